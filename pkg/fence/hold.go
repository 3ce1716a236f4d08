package fence

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/pkg/atomicfile"
	"holdfast/pkg/procid"
	"holdfast/pkg/regfile"
	"holdfast/pkg/strictjson"
)

// HoldState is what can be said of the hold of a run.
type HoldState string

// The states of a hold.
const (
	HoldAbsent   HoldState = "absent"
	HoldFree     HoldState = "free"     // nothing of the run that wrote it lives
	HoldBusy     HoldState = "held"     // something of that run lives, or another program has locked it
	HoldNoLocks  HoldState = "no-locks" // the filesystem has no locks
	holdLimit              = 64 << 10   // bytes
	holdPatience           = 2 * time.Second
)

// Hold is the hold file of a session directory, as found. Its lock belongs to an open file that a run's wrapper shares with
// its command and all that it starts: the kernel itself says whether anything of that run still lives.
type Hold struct {
	State      HoldState
	Owner      procid.Identity // that its content names; zero when it names nobody
	Generation string
	Openers    []int // pids that have it open, as far as they can be seen; only of one that is held

	stamp regfile.Stamp
}

// holdBody is the content of a hold file.
type holdBody struct {
	Owner      procid.Identity `json:"owner"`
	Generation string          `json:"generation"`
}

// hold looks at the hold file; it has its lock, shared, for a moment. Errors are *regfile.Error.
func (f *Fence) hold() (Hold, error) {
	file, err := f.dir.OpenOwned(HoldName, unix.O_RDONLY)
	if regfile.IsAbsent(err) {
		return Hold{State: HoldAbsent}, nil
	}
	if err != nil {
		return Hold{}, err
	}
	defer file.Close()
	h := Hold{State: HoldFree, stamp: file.Stamp()}
	switch err := regfile.Retry(func() error { return unix.Flock(file.FD(), unix.LOCK_SH|unix.LOCK_NB) }); {
	case err == unix.EWOULDBLOCK:
		h.State = HoldBusy
	case err != nil:
		h.State = HoldNoLocks
	case byteLocked(file.FD()):
		h.State = HoldBusy
	}
	if snap, err := file.Snapshot(holdLimit); err == nil && snap != nil {
		var body holdBody
		if strictjson.Decode(snap.Bytes, &body) == nil {
			h.Owner, h.Generation = body.Owner, body.Generation
		}
	}
	return h, nil
}

// judged is the verdict of a process lookup with what the hold adds: a dead owner's run may still have living children, and
// where nothing of the owner's own run lives, the owner does not, wherever it ran.
func judged(v procid.Verdict, owner procid.Identity, h Hold, local bool) procid.Verdict {
	switch {
	case h.State == HoldBusy && v.Word == procid.Dead:
		return procid.Verdict{Word: procid.Uncertain, Reason: runLives}
	case h.State == HoldNoLocks && h.Owner != (procid.Identity{}) && v.Word == procid.Dead:
		return procid.Verdict{Word: procid.Uncertain, Reason: "its own process is gone, but whether something of its run lives cannot be told: the filesystem has no locks"}
	case h.State == HoldFree && h.Owner == owner && local && (v.Word == procid.Uncertain || v.Word == procid.OtherHost):
		return procid.Verdict{Word: procid.Dead, Reason: "the hold of its run is free, so nothing of that run lives"}
	}
	return v
}

// What is said of a hold that is locked, before it is known by whom.
const (
	runLives     = "its own process is gone, but something of its run lives: the hold file is locked"
	earlierLives = "something of an earlier run lives: the hold file is locked"
)

// find looks for the processes that have a locked hold file open, and completes what was said of it. That is a look at every
// open file of the system, so it is done outside of transactions, for which others wait.
func (h *Hold) find(said ...*string) {
	if h.State != HoldBusy {
		return
	}
	h.Openers = openers(h.stamp)
	for _, text := range said {
		if *text == runLives || *text == earlierLives {
			*text += h.by()
		}
	}
}

// found completes a refusal that is about a hold.
func found(err error) error {
	var r *Refusal
	if errors.As(err, &r) && r.Hold != nil {
		said := []*string{&r.How}
		if r.Verdict != nil {
			said = append(said, &r.Verdict.Reason)
		}
		r.Hold.find(said...)
	}
	return err
}

// by names who has the hold file open.
func (h Hold) by() string {
	if len(h.Openers) == 0 {
		return " by a process that cannot be seen from here"
	}
	words := make([]string, len(h.Openers))
	for i, pid := range h.Openers {
		words[i] = fmt.Sprint(pid)
	}
	return " (open in pid " + strings.Join(words, ", ") + ")"
}

// takeHold locks the hold file, which is made when it is missing and never removed or replaced, and writes whose it is. The
// file is for the command and all that it starts; closing it ends this process's part. A lock that stays with another is a
// *Refusal of code owner-uncertain.
func (tx *transaction) takeHold(c *Claim) (hold, own *os.File, err error) {
	if err := atomicfile.Ensure(tx.dir, HoldName, claimMode); err != nil {
		return nil, nil, err
	}
	file, err := tx.dir.OpenOwned(HoldName, unix.O_RDWR)
	if err != nil {
		return nil, nil, err
	}
	locked, err := lockHold(file)
	if err == nil && !locked {
		h := Hold{State: HoldBusy, stamp: file.Stamp()}
		err = tx.located(&Refusal{Code: CodeOwnerUncertain, Hold: &h, How: earlierLives})
	}
	if err == nil {
		err = rewrite(file, holdBody{Owner: c.Owner, Generation: c.Generation})
	}
	if err == nil {
		own, err = tx.lockOwn()
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return os.NewFile(uintptr(file.FD()), file.Path()), own, nil
}

// lockOwn opens the hold file once more, for this process alone, and locks a byte of it: what the command does to the lock that
// it inherits, it cannot do to this one.
func (tx *transaction) lockOwn() (*os.File, error) {
	file, err := tx.dir.OpenOwned(HoldName, unix.O_RDWR)
	if err != nil {
		return nil, err
	}
	if err := lockByte(file.FD()); err != nil {
		file.Close()
		return nil, regfile.IOError("lock", file.Path(), err)
	}
	return os.NewFile(uintptr(file.FD()), file.Path()), nil
}

// lockHold waits as long as somebody who only looks may have the lock.
func lockHold(file *regfile.File) (bool, error) {
	for deadline := time.Now().Add(holdPatience); ; time.Sleep(2 * time.Millisecond) {
		err := regfile.Retry(func() error { return unix.Flock(file.FD(), unix.LOCK_EX|unix.LOCK_NB) })
		switch {
		case err == nil:
			return true, nil
		case !errors.Is(err, unix.EWOULDBLOCK):
			return false, regfile.IOError("lock", file.Path(), err)
		case time.Now().After(deadline):
			return false, nil
		}
	}
}

// rewrite puts the content in place, for the lock belongs to the inode. It is emptied first: half a line names nobody.
func rewrite(file *regfile.File, body holdBody) error {
	line, err := strictjson.Line(body)
	if err != nil {
		return err
	}
	if err := regfile.Retry(func() error { return unix.Ftruncate(file.FD(), 0) }); err != nil {
		return regfile.IOError("truncate", file.Path(), err)
	}
	for at := 0; at < len(line); {
		var n int
		err := regfile.Retry(func() (err error) { n, err = unix.Pwrite(file.FD(), line[at:], int64(at)); return err })
		if err != nil {
			return regfile.IOError("write", file.Path(), err)
		}
		at += n
	}
	return nil
}
