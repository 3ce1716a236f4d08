package fence

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/pkg/regfile"
)

// The manners of proper-lockfile with its smallest stale time: a holder touches its lease every second, and one that is
// untouched for ten is left behind, unless its users say otherwise.
const (
	touchEvery   = time.Second
	lookEvery    = 100 * time.Millisecond
	DefaultStale = 10 * time.Second
)

// NativeHold is a native lease that this process has, as an empty directory that it touches every second. Release must be
// called.
type NativeHold struct {
	mu    sync.Mutex
	taken []heldLease
	loss  error         // why it is no longer ours
	stop  chan struct{} // closed by Release
	lost  chan struct{} // closed at the loss
	done  chan struct{} // closed when nothing is touched any more
}

// heldLease is one of the directories, as it was touched last.
type heldLease struct {
	path  string
	stamp regfile.Stamp
}

// TakeNative takes the native lease after the admission a, under both of its names. One that is there may be the dead
// owner's whom the admission replaced; it is taken over when it stays untouched for stale. Anybody else's is refused
// (*Refusal of code legacy-lease-present), and what was made is removed again.
func (f *Fence) TakeNative(ctx context.Context, a *Admission, stale time.Duration) (*NativeHold, error) {
	h := &NativeHold{stop: make(chan struct{}), lost: make(chan struct{}), done: make(chan struct{})}
	attributed := a.Replaced != nil && a.Replaced.State != Closed && a.Replaced.attributed(f.selected)
	for _, path := range leasePaths(f.selected, f.resource) {
		if err := h.take(ctx, path, attributed, stale); err != nil {
			_ = h.remove()
			return nil, f.nativeRefused(err)
		}
	}
	go h.keep()
	return h, nil
}

// errOccupied is a native lease that somebody else has.
var errOccupied = errors.New("somebody else has the native lease")

func (f *Fence) nativeRefused(err error) error {
	if !errors.Is(err, errOccupied) {
		return err
	}
	r := &Refusal{Code: CodeLegacyLease, Err: err}
	r.Native, _ = nativeLeases(f.selected, f.resource)
	return f.located(r)
}

func (h *NativeHold) take(ctx context.Context, path string, attributed bool, stale time.Duration) error {
	err := regfile.Retry(func() error { return unix.Mkdir(path, 0o777) })
	if err == nil {
		return h.touchFirst(path)
	}
	if !errors.Is(err, unix.EEXIST) {
		return regfile.IOError("create directory", path, err)
	}
	found, err := lookAtLease(path)
	switch {
	case err != nil:
		return err
	case found == nil:
		return h.take(ctx, path, attributed, stale) // gone meanwhile
	case h.has(found.stamp):
		return nil // the other name of what was made a moment ago
	case !attributed || found.Kind != regfile.Directory:
		return errOccupied
	}
	if err := untouched(ctx, found, stale); err != nil {
		return err
	}
	return h.touchFirst(path)
}

func (h *NativeHold) has(st regfile.Stamp) bool {
	for _, l := range h.taken {
		if l.stamp.SameFile(st) {
			return true
		}
	}
	return false
}

// untouched waits until the lease has not been touched for the whole time, on this process's own clock.
func untouched(ctx context.Context, found *NativeLease, stale time.Duration) error {
	for began := time.Now(); time.Since(began) < stale; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(lookEvery, stale)):
		}
		now, err := lookAtLease(found.Path)
		if err != nil {
			return err
		}
		if now == nil || !now.stamp.SameFile(found.stamp) || !now.Mtime.Equal(found.Mtime) {
			return errOccupied
		}
	}
	return nil
}

// touchFirst touches a lease that this process has just made, or takes over in place: removing a stale one and making it
// anew could remove the one that another contender has made in between.
func (h *NativeHold) touchFirst(path string) error {
	before, err := regfile.Lstat(path)
	if err != nil {
		return err
	}
	l := heldLease{path: path, stamp: before}
	if err := l.touch(); err != nil {
		return err
	}
	h.taken = append(h.taken, l)
	return nil
}

// touch sets the mtime to now and remembers what the filesystem made of it.
func (l *heldLease) touch() error {
	now := unix.NsecToTimespec(time.Now().Truncate(time.Millisecond).UnixNano())
	err := l.touchSame(now)
	if err != nil {
		return regfile.IOError("touch", l.path, err)
	}
	st, err := regfile.Lstat(l.path)
	if err != nil {
		return err
	}
	if !st.SameFile(l.stamp) {
		return &LeaseLostError{Path: l.path, How: "is another directory by now"}
	}
	l.stamp = st
	return nil
}

// touchSame touches the directory that this process has the lease by, and no other that may have taken its name meanwhile.
func (l *heldLease) touchSame(now unix.Timespec) error {
	var fd int
	err := regfile.Retry(func() (err error) {
		fd, err = unix.Open(l.path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || uint64(st.Dev) != l.stamp.Dev || st.Ino != l.stamp.Ino {
		return err // the caller sees that it is another
	}
	return unix.Futimes(fd, []unix.Timeval{unix.NsecToTimeval(now.Nano()), unix.NsecToTimeval(now.Nano())})
}

// LeaseLostError says that a native lease is no longer this process's.
type LeaseLostError struct{ Path, How string }

// ErrorCode is the stable code.
func (e *LeaseLostError) ErrorCode() string { return CodeNativeLost }

func (e *LeaseLostError) Error() string {
	return fmt.Sprintf("the native lease %s %s", regfile.Printable(e.Path), e.How)
}

// ours fails unless the path still names the directory as it was touched last.
func (l *heldLease) ours() error {
	st, err := regfile.Lstat(l.path)
	switch {
	case regfile.IsAbsent(err):
		return &LeaseLostError{Path: l.path, How: "is gone"}
	case err != nil:
		return err
	case !st.SameFile(l.stamp):
		return &LeaseLostError{Path: l.path, How: "is another directory by now"}
	case !st.Mtime.Equal(l.stamp.Mtime):
		return &LeaseLostError{Path: l.path, How: "was touched by somebody else"}
	}
	return nil
}

// keep touches every second until Release, or until the lease is lost.
func (h *NativeHold) keep() {
	defer close(h.done)
	tick := time.NewTicker(touchEvery)
	defer tick.Stop()
	for {
		select {
		case <-h.stop:
			return
		case <-h.lost:
			return
		case <-tick.C:
			_ = h.Check()
		}
	}
}

// Check verifies that the lease is still ours and touches it. Once lost it stays lost.
func (h *NativeHold) Check() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := 0; i < len(h.taken) && h.loss == nil; i++ {
		l := &h.taken[i]
		if h.loss = l.ours(); h.loss == nil {
			h.loss = l.touch()
		}
		if h.loss != nil {
			close(h.lost)
		}
	}
	return h.loss
}

// Wait returns the loss when the lease is lost, or nil when it is released.
func (h *NativeHold) Wait() error {
	<-h.done
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.loss
}

// Release removes what is still ours. The error says that the lease was lost, or could not be removed.
func (h *NativeHold) Release() error {
	close(h.stop)
	<-h.done
	return h.remove()
}

func (h *NativeHold) remove() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	errs := []error{h.loss}
	for _, l := range h.taken {
		err := l.ours()
		if err == nil {
			if no := regfile.Retry(func() error { return unix.Rmdir(l.path) }); no != nil {
				err = regfile.IOError("remove", l.path, no)
			}
		}
		errs = append(errs, err)
	}
	h.taken = nil
	return errors.Join(errs...)
}
