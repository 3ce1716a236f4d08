package claim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/dirwatch"
	"holdfast/pkg/atomicfile"
	"holdfast/pkg/procid"
	"holdfast/pkg/regfile"
	"holdfast/pkg/strictjson"
)

// Who enters, as the evidence tells it.
type Who struct {
	Tool  string
	Op    string
	Root  string // what Op is about, where the claim serves several things
	Token string // a UUID of this entry
	Self  procid.Identity

	Waiting func(waited time.Duration) // told of each look at a claim that another has; may be nil, must be quick
}

// Held is a claim this process is inside of. Leave must be called.
type Held struct {
	dir    *regfile.Dir
	name   string
	fd     int
	dev    uint64
	ino    uint64
	locked bool
}

// TimeoutError says that a claim stayed for as long as the caller would wait.
type TimeoutError struct {
	Waited     time.Duration
	Inspection Inspection
}

// ErrorCode is the stable code.
func (e *TimeoutError) ErrorCode() string { return "claim-timeout" }

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("waited %s for %s", e.Waited.Round(time.Millisecond), e.Inspection.Describe())
}

// Enter creates the claim called name, waiting at most bound while another has it. Errors: *TimeoutError;
// *regfile.Error when the name holds something else than a regular file, or the system refuses; ctx's error.
func Enter(ctx context.Context, d *regfile.Dir, name string, who Who, bound time.Duration) (*Held, error) {
	started := time.Now()
	waiter := dirwatch.NewWaiter(d.FD())
	defer waiter.Close()
	for {
		h, err := create(d, name)
		if err != nil {
			return nil, err
		}
		if h != nil {
			entered, err := h.enter(ctx, who, later(started.Add(bound), time.Now().Add(lookersPatience)))
			if err != nil {
				return nil, err
			}
			if entered {
				return h, nil
			}
			continue // cleared before it was locked: start over
		}
		if err := checkOccupant(d, name); err != nil {
			return nil, err
		}
		if waited := time.Since(started); waited >= bound {
			return nil, timeout(d, name, waited)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if who.Waiting != nil {
			who.Waiting(time.Since(started))
		}
		waiter.Wait(bound - time.Since(started))
	}
}

// lookersPatience is how long a claim that was just created waits for those who only look at it, whatever its bound: giving up
// leaves it behind.
const lookersPatience = time.Second

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// create returns nil without an error when the name is taken.
func create(d *regfile.Dir, name string) (*Held, error) {
	h := &Held{dir: d, name: name}
	err := regfile.Retry(func() (err error) {
		h.fd, err = unix.Openat(d.FD(), name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		return err
	})
	if errors.Is(err, unix.EEXIST) {
		return nil, nil
	}
	if err != nil {
		return nil, regfile.IOError("create", d.Join(name), err)
	}
	var st unix.Stat_t
	if err := regfile.Retry(func() error { return unix.Fstat(h.fd, &st) }); err != nil {
		unix.Close(h.fd)
		return nil, regfile.IOError("stat", d.Join(name), err)
	}
	h.dev, h.ino = uint64(st.Dev), st.Ino
	return h, nil
}

// checkOccupant refuses what no participant leaves behind.
func checkOccupant(d *regfile.Dir, name string) error {
	st, err := d.Lstat(name)
	switch {
	case regfile.IsAbsent(err):
		return nil
	case err != nil:
		return err
	case st.Kind != regfile.Regular:
		return &regfile.Error{Code: regfile.CodeNotRegular, Path: d.Join(name), Kind: st.Kind, Stamp: &st}
	}
	return d.CheckOwner(name, st)
}

// enter locks the new claim and writes the evidence. It returns false when the claim was cleared meanwhile.
func (h *Held) enter(ctx context.Context, who Who, deadline time.Time) (bool, error) {
	if err := h.lock(ctx, deadline); err != nil {
		return false, err
	}
	if !h.named() {
		h.close()
		return false, nil
	}
	h.testify(who)
	return true, nil
}

// lock takes the kernel lock, which an inspector or a clearer may have for a moment. When it gives up, the claim stays:
// a clearer that has the lock may be about to unlink this very path, and must not hit a successor's claim instead.
func (h *Held) lock(ctx context.Context, deadline time.Time) error {
	for started := time.Now(); ; time.Sleep(time.Millisecond) {
		locked, err := tryLock(h.fd, unix.LOCK_EX)
		switch {
		case locked:
			h.locked = true
			return nil
		case errors.Is(err, errNoLocks):
			return nil
		case err != nil:
			err = regfile.IOError("lock", h.path(), err)
		case ctx.Err() != nil:
			err = ctx.Err()
		case time.Now().After(deadline):
			err = timeout(h.dir, h.name, time.Since(started))
		default:
			continue
		}
		h.close()
		return err
	}
}

// testify writes the evidence. Evidence serves people; a full disk must not keep a holder from releasing, so a claim
// whose evidence cannot be written holds all the same and is left empty.
func (h *Held) testify(who Who) {
	line, err := strictjson.Line(Evidence{
		Token: who.Token, Tool: who.Tool, Op: who.Op, Root: who.Root,
		PID: who.Self.PID, StartKey: who.Self.StartKey, Hostname: who.Self.Hostname,
		EnteredAt: enteredAt(time.Now()), Dev: h.dev, KernelLock: h.locked,
	})
	if err == nil {
		_ = atomicfile.WriteNew(h.fd, line)
	}
}

func (h *Held) path() string { return h.dir.Join(h.name) }

// named reports whether the path still names our inode.
func (h *Held) named() bool {
	st, err := h.dir.Lstat(h.name)
	return err == nil && st.Dev == h.dev && st.Ino == h.ino
}

// Holds reports whether the claim is still ours: the path names our inode. When it does not, an operator cleared the
// claim by force, and another participant may be inside.
func (h *Held) Holds() bool { return h.named() }

// Leave removes the claim, unless the path names another by now, and closes it. An error means that the claim is still
// there.
func (h *Held) Leave() error {
	defer h.close()
	if !h.named() {
		return nil
	}
	return atomicfile.Remove(h.dir, h.name)
}

// Keep leaves the claim where it is, as a fence, and closes it: nobody enters until it is cleared.
func (h *Held) Keep() { h.close() }

func (h *Held) close() { unix.Close(h.fd) }

func timeout(d *regfile.Dir, name string, waited time.Duration) error {
	in, err := Inspect(d, name)
	if err != nil {
		return err
	}
	return &TimeoutError{Waited: waited, Inspection: in}
}
