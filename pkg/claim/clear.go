package claim

import (
	"golang.org/x/sys/unix"

	"holdfast/pkg/atomicfile"
	"holdfast/pkg/regfile"
)

// ClearRequest names the claim to clear: by its token, or by the fingerprint of its content.
type ClearRequest struct {
	Token  string
	Digest string // an Inspection's Fingerprint; only with Force
	Force  bool   // also when unproven
}

// ClearError says why a claim was left alone.
type ClearError struct {
	Code       string // "held", "unproven", "claim-mismatch", "claim-changed" or "absent"
	Inspection Inspection
}

// ErrorCode is the stable code.
func (e *ClearError) ErrorCode() string { return e.Code }

func (e *ClearError) Error() string {
	path := regfile.Printable(e.Inspection.Path)
	switch e.Code {
	case "absent":
		return "there is no claim " + path
	case "held":
		return "a held claim is never cleared: " + e.Inspection.Describe()
	case "claim-mismatch":
		return "that is not the claim that is there: " + e.Inspection.Describe()
	case "claim-changed":
		return "the claim " + path + " was replaced while it was being cleared; nothing was removed"
	}
	return "only an abandoned claim is cleared without force: " + e.Inspection.Describe()
}

// Clear removes an abandoned claim, or an unproven one by force, and returns what it removed. Forcing a live claim of
// another program can make two holders. Errors: *ClearError, *regfile.Error.
func Clear(d *regfile.Dir, name string, req ClearRequest) (Inspection, error) {
	f, err := d.OpenOwned(name, unix.O_RDWR)
	if regfile.IsAbsent(err) {
		return Inspection{}, &ClearError{"absent", Inspection{Path: d.Join(name), State: Absent}}
	}
	if err != nil {
		return Inspection{}, err
	}
	defer f.Close()
	lock, err := probe(f, unix.LOCK_EX)
	if err != nil {
		return Inspection{}, err
	}
	in, err := examine(d, f, lock)
	if err != nil {
		return Inspection{}, err
	}
	if code := refuseClear(in, req); code != "" {
		return in, &ClearError{code, in}
	}
	if st, err := d.Lstat(name); err != nil || !st.SameFile(f.Stamp()) {
		return in, &ClearError{"claim-changed", in}
	}
	return in, atomicfile.Remove(d, name)
}

// Seize takes over a claim that nobody has open, with its kernel lock: so that what its creator left can be put in order
// before it is left, or kept. Errors: *ClearError of code held, unproven (the filesystem has no locks, so nothing shows whether
// the creator is inside) or absent; *regfile.Error.
func Seize(d *regfile.Dir, name string) (*Held, Inspection, error) {
	f, err := d.OpenOwned(name, unix.O_RDWR)
	if regfile.IsAbsent(err) {
		in := Inspection{Path: d.Join(name), State: Absent}
		return nil, in, &ClearError{"absent", in}
	}
	if err != nil {
		return nil, Inspection{}, err
	}
	h := &Held{dir: d, name: name, fd: f.FD(), dev: f.Stamp().Dev, ino: f.Stamp().Ino, locked: true}
	lock, err := probe(f, unix.LOCK_EX)
	var in Inspection
	if err == nil {
		in, err = examine(d, f, lock)
	}
	switch {
	case err != nil:
	case lock == lockTaken:
		err = &ClearError{"held", in}
	case lock == lockUnsupported:
		err = &ClearError{"unproven", in}
	case !h.named():
		err = &ClearError{"claim-changed", in}
	default:
		return h, in, nil
	}
	h.close()
	return nil, in, err
}

// refuseClear is the decision; an empty code permits.
func refuseClear(in Inspection, req ClearRequest) string {
	named := req.Token != "" && req.Token == in.Token || req.Force && req.Digest != "" && req.Digest == in.Fingerprint
	switch {
	case in.State == HeldNow:
		return "held"
	case !named:
		return "claim-mismatch"
	case in.State != Abandoned && !req.Force:
		return "unproven"
	}
	return ""
}
