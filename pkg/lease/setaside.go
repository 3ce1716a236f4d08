package lease

import (
	"context"
	"errors"

	"holdfast/pkg/atomicfile"
	"holdfast/pkg/claim"
	"holdfast/pkg/regfile"
)

// Aside says what was moved where.
type Aside struct {
	From string
	To   string
}

// SetAside moves the broken lock or journal that has exactly this fingerprint to NAME.broken-<8 hex digits>, inside the
// claim. A readable file, or another fingerprint, changes nothing (*Refusal of code not-broken or
// fingerprint-mismatch).
func (s *Store) SetAside(ctx context.Context, fingerprint string) (*Aside, error) {
	if s.dir == nil {
		return nil, &Refusal{Code: CodeFingerprintMismatch, Path: s.path, Fingerprint: fingerprint}
	}
	if _, err := s.broken(fingerprint); err != nil {
		return nil, err
	}
	held, err := claim.Enter(ctx, s.dir, s.claimName(), s.who("set-aside"), s.iv.claimBound)
	if err != nil {
		return nil, s.claimRefused(err)
	}
	defer held.Leave()
	name, err := s.broken(fingerprint)
	if err != nil {
		return nil, err
	}
	aside := name + ".broken-" + s.opts.NewID()[:8]
	if err := atomicfile.Move(s.dir, name, aside); err != nil {
		return nil, err
	}
	if !held.Holds() {
		return nil, &Refusal{Code: CodeClaimLost, Path: s.path, How: "moved to " + s.dir.Join(aside)}
	}
	return &Aside{From: s.dir.Join(name), To: s.dir.Join(aside)}, nil
}

// broken returns the name of the file that is broken and has the fingerprint.
func (s *Store) broken(fingerprint string) (string, error) {
	_, lockErr := s.read()
	_, journalErr := s.History()
	for _, f := range []struct {
		name string
		err  error
	}{{s.name, lockErr}, {s.journalName(), journalErr}} {
		if f.err != nil && Fingerprint(f.err) == fingerprint {
			return f.name, nil
		}
		if readable, err := s.dir.Read(f.name, journalLimit); f.err == nil && err == nil && readable.Fingerprint() == fingerprint {
			return "", &Refusal{Code: CodeNotBroken, Path: s.dir.Join(f.name), Fingerprint: fingerprint}
		}
	}
	for _, err := range []error{lockErr, journalErr} {
		if err != nil && Fingerprint(err) == "" {
			return "", err // what could not be examined may be what the caller means
		}
	}
	return "", &Refusal{Code: CodeFingerprintMismatch, Path: s.path, Fingerprint: fingerprint}
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
