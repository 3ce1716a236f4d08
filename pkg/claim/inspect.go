package claim

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/pkg/procid"
	"holdfast/pkg/regfile"
)

// State is what can be said of a claim, as a stable word.
type State string

// The states.
const (
	Absent    State = "absent"
	HeldNow   State = "held"      // its kernel lock is taken
	Abandoned State = "abandoned" // proven: its creator locked it and is gone
	Unproven  State = "unproven"  // another program's, or nothing that can be proven
)

// Inspection is a claim as it was found.
type Inspection struct {
	Path        string
	State       State
	Reason      string          // why it is in that state, a clause
	Evidence    *Evidence       // nil when another program wrote it, or nothing was written
	Token       string          // what Clear must be given; empty when only a digest can name it
	Fingerprint string          // for Clear by digest: of the content, of the metadata when that is too large
	Age         time.Duration   // since it was created, by the wall clock
	Creator     *procid.Verdict // of the evidence's process; nil without evidence
}

// Describe says what the claim is, as the object of a sentence.
func (in Inspection) Describe() string {
	path := regfile.Printable(in.Path)
	if in.State == Absent {
		return "the claim " + path + ", which is gone now"
	}
	age := in.Age.Round(time.Second)
	if in.Evidence == nil {
		return fmt.Sprintf("the claim %s (%s, %s old, creator unknown): %s", path, in.State, age, in.Reason)
	}
	e := in.Evidence
	return fmt.Sprintf("the claim %s (%s, %s old, of %s %s, pid %d on %s): %s", path, in.State, age,
		regfile.Printable(e.Tool), regfile.Printable(e.Op), e.PID, regfile.Printable(e.Hostname), in.Reason)
}

// lockTries bounds how often a lock that a clearer or inspector may have for a moment is tried.
const lockTries = 20

// Inspect says what the claim called name is. It writes nothing; it holds a shared kernel lock for a moment. An error is
// a *regfile.Error.
func Inspect(d *regfile.Dir, name string) (Inspection, error) {
	absent := Inspection{Path: d.Join(name), State: Absent, Reason: "there is no claim"}
	f, err := d.OpenOwned(name, unix.O_RDONLY)
	if regfile.IsAbsent(err) {
		return absent, nil
	}
	if err != nil {
		return unopened(err)
	}
	defer f.Close()
	lock, err := probe(f, unix.LOCK_SH)
	if err != nil {
		return Inspection{}, err
	}
	in, err := examine(d, f, lock)
	if err != nil {
		return Inspection{}, err
	}
	switch now, err := f.Stat(); {
	case err != nil:
		return Inspection{}, err
	case now.Nlink == 0:
		return absent, nil // left while it was looked at: that its lock is free proves nothing
	}
	return in, nil
}

// unopened is the inspection of a claim that is a regular file but may not be read: another user's, in a directory that
// they share on purpose.
func unopened(err error) (Inspection, error) {
	var file *regfile.Error
	if !errors.As(err, &file) || file.Code == regfile.CodeForeignOwner || file.Kind != regfile.Regular || file.Stamp == nil {
		return Inspection{}, err
	}
	return Inspection{
		Path: file.Path, State: Unproven, Reason: fmt.Sprintf("it belongs to uid %d and cannot be read: %s", file.Stamp.UID, regfile.Errno(file.Err)),
		Age: max(time.Since(file.Stamp.Mtime), 0),
	}, nil
}

// lockSeen is what trying the kernel lock showed.
type lockSeen int

const (
	lockTaken lockSeen = iota
	lockFree           // and now ours, until the file is closed
	lockUnsupported
)

func probe(f *regfile.File, how int) (lockSeen, error) {
	for try := 1; ; try++ {
		ok, err := tryLock(f.FD(), how)
		switch {
		case errors.Is(err, errNoLocks):
			return lockUnsupported, nil
		case err != nil:
			return lockTaken, regfile.IOError("lock", f.Path(), err)
		case ok:
			return lockFree, nil
		case try == lockTries:
			return lockTaken, nil
		}
		time.Sleep(time.Millisecond)
	}
}

// examine reads the evidence through f and judges it.
func examine(d *regfile.Dir, f *regfile.File, lock lockSeen) (Inspection, error) {
	st := f.Stamp()
	content := make([]byte, limit)
	n, err := f.ReadAt(content, 0)
	if err != nil {
		return Inspection{}, err
	}
	content = content[:n]
	in := Inspection{
		Path:        f.Path(),
		Fingerprint: regfile.Fingerprint(content),
		Age:         max(time.Since(st.Mtime), 0),
	}
	if st.Size > limit {
		in.Fingerprint = st.Fingerprint() // what was read is not all of it, so its hash would name other files too
	}
	in.Evidence, in.Token = parseEvidence(content)
	var creator procid.Verdict
	if in.Evidence != nil {
		creator = procid.Judge(in.Evidence.identity(), d.IsLocal())
		in.Creator = &creator
	}
	in.State, in.Reason = judge(in.Evidence, creator, lock, seenFrom(st.Dev))
	return in, nil
}

// view is from where a claim is looked at.
type view struct {
	dev  uint64 // st_dev of the claim
	boot string // boot id; empty when not known
}

func seenFrom(dev uint64) view {
	v := view{dev: dev}
	if self, err := procid.Self(); err == nil {
		if key := procid.ParseKey(self.StartKey); !key.Weak() {
			v.boot = key.Boot
		}
	}
	return v
}

// judge is the decision: from the evidence, its creator's verdict and the lock to the state and its reason.
func judge(e *Evidence, creator procid.Verdict, lock lockSeen, from view) (State, string) {
	switch {
	case lock == lockTaken:
		return HeldNow, "its kernel lock is taken, so its creator still has it open"
	case e == nil:
		return Unproven, "it carries no evidence of ours: another program made it, or its creator was stopped before writing any"
	case !e.KernelLock || lock == lockUnsupported:
		return Unproven, "the filesystem has no kernel locks, so nothing shows whether its creator is inside"
	case creator.Word == procid.Dead:
		return Abandoned, "its kernel lock is free, and its creator is dead: " + creator.Reason
	case creator.Word == procid.Live:
		return Unproven, "its kernel lock is free, but its creator lives: " + creator.Reason
	case from.boot != "" && procid.ParseKey(e.StartKey).Boot == from.boot && e.Dev == from.dev:
		return Abandoned, "its creator locked it on this very system, and the lock is free"
	}
	return Unproven, "its kernel lock is free here, but that may be another view of the file; its creator: " + creator.Reason
}
