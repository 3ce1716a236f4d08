package lease

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/dirwatch"
	"holdfast/pkg/regfile"
)

// CodeWaitTimeout says that waiting was in vain.
const CodeWaitTimeout = "wait-timeout"

// Condition is what Await waits for.
type Condition string

// The conditions. Acquirable is free or expired.
const (
	UntilFree       Condition = "free"
	UntilExpired    Condition = "expired"
	UntilAcquirable Condition = "acquirable"
)

func (c Condition) met(o Observed, now time.Time) bool {
	switch {
	case o.Lease == nil:
		return c != UntilExpired
	case o.Lease.Expired(now):
		return c != UntilFree
	}
	return false
}

// longestPoll bounds how long a waiter sleeps without looking: not every filesystem has events.
const longestPoll = time.Second

// Await waits until the condition is met, at most for timeout when that is positive. waiting, which may be nil, is told of
// each look in vain. Errors: a *Refusal of code wait-timeout or directory-moved, those of reading, ctx's.
func (s *Store) Await(ctx context.Context, c Condition, timeout time.Duration, waiting func(l *Lease)) error {
	w := s.newWait(timeout, waiting)
	defer w.close()
	for {
		o, now, err := s.observe()
		if err != nil {
			return err
		}
		if c.met(o, now) {
			return nil
		}
		if err := w.wait(ctx, o.Lease, now); err != nil {
			return err
		}
	}
}

// AcquireWaiting is Acquire that waits at most so long while somebody else holds the lease. An expired lease that must not
// be taken over is refused at once: waiting does not help.
func (s *Store) AcquireWaiting(ctx context.Context, req AcquireRequest, most time.Duration, waiting func(l *Lease)) (*Outcome, error) {
	if most <= 0 {
		return s.Acquire(ctx, req)
	}
	w := s.newWait(most, waiting)
	defer w.close()
	for {
		out, err := s.Acquire(ctx, req)
		var refusal *Refusal
		if !errors.As(err, &refusal) || refusal.Code != CodeHeld && !(refusal.Code == CodeChanged && refusal.Written == nil) {
			return out, err
		}
		if err := w.wait(ctx, refusal.Lease, s.opts.Now()); err != nil {
			return nil, err
		}
	}
}

// Watch calls look at once, and again whenever the lease may have changed, at most a second apart, until ctx ends or look
// fails. It follows a directory that is removed and made again; one that is moved away ends it.
func (s *Store) Watch(ctx context.Context, look func() error) error {
	w := s.newWait(0, nil)
	defer w.close()
	for {
		if err := look(); err != nil {
			return err
		}
		o, now, _ := s.observe()
		if err := w.wait(ctx, o.Lease, now); err != nil {
			return err
		}
	}
}

// waiting is one wait for a lease.
type waiting struct {
	store   *Store
	started time.Duration // boot clock
	most    time.Duration // 0: for ever
	tell    func(l *Lease)
	crowd   *dirwatch.Crowd
}

func (s *Store) newWait(most time.Duration, tell func(l *Lease)) *waiting {
	w := &waiting{store: s, started: s.opts.Boottime(), most: most, tell: tell}
	w.watchDirectory()
	return w
}

func (w *waiting) watchDirectory() {
	fd := -1 // no directory, no events
	if w.store.dir != nil {
		fd = w.store.dir.FD()
	}
	// A release removes the lease, every other change renames the stage; that a claim has gone means nothing here.
	w.crowd = dirwatch.NewCrowd(fd, w.store.name, w.store.stageName())
}

func (w *waiting) close() { w.crowd.Close() }

// wait sleeps until the lease may have changed or has expired.
func (w *waiting) wait(ctx context.Context, l *Lease, now time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	nap := longestPoll
	if w.most > 0 {
		waited := w.store.opts.Boottime() - w.started
		if waited >= w.most {
			return &Refusal{Code: CodeWaitTimeout, Path: w.store.path, Lease: l, Waited: waited, now: now}
		}
		nap = min(nap, w.most-waited)
	}
	if l != nil {
		if left := l.ExpiresAt.Sub(now); left > 0 {
			nap = min(nap, left)
		}
	}
	if w.tell != nil {
		w.tell(l)
	}
	w.crowd.Wait(ctx, nap)
	if w.store.follow() {
		w.close()
		w.watchDirectory()
		return nil
	}
	return w.store.CheckPath()
}

// follow gives up the directory when it has been removed, opens the one at the path when it has none, and reports whether that
// has changed anything. One that was only renamed is not given up for what is at its path then, which may be anybody's.
func (s *Store) follow() bool {
	had := s.dir != nil
	if had && !removed(s.dir) {
		return false
	}
	if had {
		_ = s.dir.Close()
		s.dir = nil
	}
	dir, err := regfile.OpenDir(filepath.Dir(s.path))
	if err == nil {
		s.dir = dir
	}
	return had || err == nil
}

// removed reports whether an open directory has no name any more.
func removed(dir *regfile.Dir) bool {
	var st unix.Stat_t
	return unix.Fstat(dir.FD(), &st) == nil && st.Nlink == 0
}
