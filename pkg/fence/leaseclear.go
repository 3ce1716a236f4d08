package fence

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/pkg/atomicfile"
	"holdfast/pkg/regfile"
)

// DefaultMinAge is how long a native lease has been untouched that nobody has any more: a program touches its own every few seconds.
const DefaultMinAge = time.Minute

// LeaseClear names a native lease that nobody alive has.
type LeaseClear struct {
	Mtime  time.Time // exactly, as Show gives it
	MinAge time.Duration
}

// ClearLease removes a native lease that is an empty directory with exactly that mtime and at least that old, when the claim
// is absent, closed or its owner dead. The breaks file says so. It returns the paths that it removed. Errors: *Refusal,
// *regfile.Error.
func (f *Fence) ClearLease(ctx context.Context, req LeaseClear) ([]string, error) {
	var removed []string
	err := f.transact(ctx, "lease-clear", func(tx *transaction) error {
		_, s, err := tx.observe()
		if err != nil {
			return err
		}
		found, err := nativeLeases(tx.selected, tx.resource)
		if err != nil {
			return err
		}
		chosen, refusal := clearDecision(req, s, found, tx.opts.Now())
		if refusal != nil {
			refusal.Hold = &s.Hold
			return tx.located(refusal)
		}
		for _, lease := range chosen {
			if err := tx.removeLease(lease); err != nil {
				return err
			}
			removed = append(removed, lease.Path)
		}
		return nil
	})
	return removed, err
}

// clearDecision picks the native leases to remove, or says why there is none.
func clearDecision(req LeaseClear, s situation, found []NativeLease, now time.Time) ([]NativeLease, *Refusal) {
	switch row := s.row(); row {
	case rowMismatch, rowOtherHost, rowLive, rowUncertain:
		return nil, refuse(row.Answer, s.Claim, &s.Verdict)
	}
	var chosen []NativeLease
	for _, lease := range found {
		if lease.Mtime.Equal(req.Mtime) {
			chosen = append(chosen, lease)
		}
	}
	one := func(code, how string, lease NativeLease) *Refusal {
		return &Refusal{Code: code, Claim: s.Claim, Native: []NativeLease{lease}, How: how, Age: now.Sub(lease.Mtime), MinAge: req.MinAge}
	}
	switch {
	case len(found) == 0:
		return nil, &Refusal{Code: CodeLeaseAbsent, Claim: s.Claim}
	case len(chosen) == 0:
		return nil, one(CodeLeaseMismatch, "was touched at "+FormatLeaseTime(found[0].Mtime)+", not at "+FormatLeaseTime(req.Mtime), found[0])
	}
	for _, lease := range chosen {
		switch {
		case lease.Kind != regfile.Directory:
			return nil, one(CodeLeaseNotEmpty, "", lease)
		case now.Sub(lease.Mtime) < req.MinAge:
			return nil, one(CodeLeaseTooYoung, "", lease)
		}
	}
	return chosen, nil
}

// FormatLeaseTime renders the mtime of a native lease, which names it: RFC 3339 in UTC to the nanosecond.
func FormatLeaseTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// removeLease removes one that was chosen, if it still is what was looked at. Whatever is in the directory keeps it: rmdir
// removes an empty one only, and the breaks file is not told of one that was seen not to be.
func (tx *transaction) removeLease(lease NativeLease) error {
	parent, err := regfile.OpenDir(filepath.Dir(lease.Path))
	if err != nil {
		return err
	}
	defer parent.Close()
	if hasEntries(parent, filepath.Base(lease.Path)) {
		return tx.located(&Refusal{Code: CodeLeaseNotEmpty, Native: []NativeLease{lease}})
	}
	self, _ := tx.opts.Self()
	line := breakLine{At: FormatTime(tx.opts.Now()), Op: "lease-clear", Operator: self, Lease: lease.Path, Mtime: FormatLeaseTime(lease.Mtime)}
	if err := tx.record(line); err != nil {
		return err
	}
	now, err := parent.Lstat(filepath.Base(lease.Path))
	if err != nil {
		return err
	}
	if !now.SameFile(lease.stamp) || !now.Mtime.Equal(lease.Mtime) {
		return tx.located(&Refusal{Code: CodeLeaseMismatch, Native: []NativeLease{lease}, How: "was touched while it was being cleared"})
	}
	err = atomicfile.RemoveDir(parent, filepath.Base(lease.Path))
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
		return tx.located(&Refusal{Code: CodeLeaseNotEmpty, Native: []NativeLease{lease}})
	}
	return err
}

// hasEntries reports whether a directory can be seen not to be empty.
func hasEntries(parent *regfile.Dir, name string) bool {
	dir, err := parent.OpenDir(name)
	if err != nil {
		return false
	}
	defer dir.Close()
	names, _ := dir.Names()
	return len(names) > 0
}
