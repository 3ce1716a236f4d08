package fence

import (
	"context"
	"errors"

	"holdfast/pkg/atomicfile"
	"holdfast/pkg/regfile"
)

func (f *Fence) asideName() string { return ClaimName + ".broken-" + f.opts.NewID()[:8] }

// SetAside moves the unreadable claim that has exactly this fingerprint to NAME.broken-<8 hex digits>, and returns the path.
// A readable one, or another fingerprint, changes nothing (*Refusal of code not-broken or fingerprint-mismatch).
func (f *Fence) SetAside(ctx context.Context, fingerprint string) (string, error) {
	var aside string
	err := f.transact(ctx, "set-aside", func(tx *transaction) error {
		if err := tx.broken(fingerprint); err != nil {
			return err
		}
		name := tx.asideName()
		aside = tx.dir.Join(name)
		return atomicfile.Move(tx.dir, ClaimName, name)
	})
	return aside, err
}

// broken refuses unless the claim is unreadable and has the fingerprint.
func (tx *transaction) broken(fingerprint string) error {
	o, err := tx.read()
	at := &Refusal{Path: tx.dir.Join(ClaimName), Claim: o.Claim, Fingerprint: fingerprint}
	switch found := Fingerprint(err); {
	case found == fingerprint && found != "":
		return nil
	case err != nil && found == "":
		return err
	case err == nil && o.Claim != nil:
		at.Code = CodeNotBroken
	default:
		at.Code = CodeFingerprintMismatch
	}
	return tx.located(at)
}

// Fingerprint is the fingerprint of the broken file that an error is about; empty when it is about none.
func Fingerprint(err error) string {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Fingerprint
	}
	var file *regfile.Error
	if errors.As(err, &file) {
		return file.Fingerprint()
	}
	return ""
}
