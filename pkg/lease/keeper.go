package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"holdfast/pkg/regfile"
)

// MinGrace is the shortest grace: it has to hold a SIGTERM, a SIGKILL and the reaping.
const MinGrace = 200 * time.Millisecond

// DefaultGrace is the grace for a duration unless the caller has another: a quarter, at most 10 s.
func DefaultGrace(duration time.Duration) time.Duration { return min(duration/4, 10*time.Second) }

// CheckGrace says whether the three moments of a keeper are in order: renewing at half the duration, giving up a grace
// before its end, and the end.
func CheckGrace(duration, grace time.Duration) error {
	switch {
	case grace < MinGrace:
		return fmt.Errorf("a grace of %s is too short to end a command in; the least is %s", grace, MinGrace)
	case duration/2 >= duration-grace:
		return fmt.Errorf("a grace of %s is not shorter than half of the duration, %s: there would be no time to renew in", grace, duration/2)
	}
	return nil
}

// Loss is why a keeper no longer keeps its lease: a cause that is a stable word, and what was found.
type Loss struct {
	Cause string
	Err   error
}

// ErrorCode is the cause.
func (l *Loss) ErrorCode() string { return l.Cause }

// Unwrap is what was found.
func (l *Loss) Unwrap() error { return l.Err }

func (l *Loss) Error() string {
	if l.Err == nil {
		return l.Cause
	}
	return l.Err.Error()
}

// CauseOverdue is the loss of a lease that could not be renewed in time.
const CauseOverdue = "renewal-overdue"

// KeeperEvent is something a keeper did or noticed.
type KeeperEvent struct {
	Name  string        // renewed, renew-failed, clock-jump
	Lease *Lease        // after renewed
	Err   error         // of renew-failed
	Left  time.Duration // until the lease ends
	Jump  time.Duration // of clock-jump: how far the wall clock ran ahead (or fell behind) of the boot clock
	Gap   time.Duration // of clock-jump: how long nothing ran
}

// Keeper renews a lease at its half-life until it is stopped or the lease is lost. Two goroutines share the work, so that
// a renewal which is stuck in a disk or behind a claim does not delay the deadline: the watchdog only looks at clocks, the
// renewer only at files.
type Keeper struct {
	store  *Store
	grace  time.Duration
	notify func(KeeperEvent)
	tick   time.Duration

	mu    sync.Mutex
	lease *Lease
	ends  time.Duration // on the boot clock: no later than the lease ends
	fault error         // of the last renewal, nil when it succeeded
	wall  time.Time     // when the clocks were last compared, on each
	boot  time.Duration

	lost    chan error // a *Loss
	poke    chan struct{}
	stop    chan struct{}
	stopped sync.WaitGroup
	once    sync.Once

	trying context.Context // of renewals: one that waits for the claim when the lease is lost is given up
	giveUp context.CancelFunc
}

// Keep starts a keeper of the lease that an Acquire has just returned. notify is called from several goroutines, one call
// at a time, and must return at once: the watchdog calls it too.
func (s *Store) Keep(out *Outcome, grace time.Duration, notify func(KeeperEvent)) *Keeper {
	var serial sync.Mutex
	k := &Keeper{
		store: s, grace: grace, lease: out.Lease, ends: out.began + out.Lease.term(),
		tick: min(s.iv.tick, max(out.Lease.term()/20, 10*time.Millisecond)),
		wall: s.opts.Now().Round(0), boot: s.opts.Boottime(),
		notify: func(e KeeperEvent) {
			serial.Lock()
			defer serial.Unlock()
			notify(e)
		},
		lost: make(chan error, 1), poke: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	k.trying, k.giveUp = context.WithCancel(context.Background())
	k.stopped.Add(1)
	go k.watch()
	go k.renew()
	return k
}

// Lost gives the loss, a *Loss, once.
func (k *Keeper) Lost() <-chan error { return k.lost }

// Lease is the lease as it was last known to be this keeper's.
func (k *Keeper) Lease() *Lease {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lease
}

// Left is how long the lease lasts: until the wall clock reaches its expiry, or the boot clock the moment before its
// renewal plus its duration, whichever is first.
func (k *Keeper) Left() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return min(k.lease.ExpiresAt.Sub(k.store.opts.Now()), k.ends-k.store.opts.Boottime())
}

// Check looks at the clocks and at the lease now, and reports a loss before it returns: for a process that has just been
// continued. A renewal that has become due begins now and not at the next tick, which may be too late.
func (k *Keeper) Check() {
	select {
	case <-k.stop:
		return
	default:
	}
	k.compareClocks()
	if left := k.Left(); left <= k.grace {
		k.lose(k.overdue(left))
	} else if loss := k.examine(); loss != nil {
		k.lose(loss)
	} else {
		k.wake()
	}
}

// wake makes the renewer look.
func (k *Keeper) wake() {
	select {
	case k.poke <- struct{}{}:
	default: // it has not come round to the last time
	}
}

// Stop ends the keeping; a renewal that is under way is finished first, unless ctx ends. The lease stays.
func (k *Keeper) Stop(ctx context.Context) error {
	k.once.Do(func() { close(k.stop) })
	done := make(chan struct{})
	go func() {
		k.stopped.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lose reports a loss, unless there was one before or the keeper was stopped.
func (k *Keeper) lose(l *Loss) {
	k.once.Do(func() {
		k.giveUp()
		k.lost <- l
		close(k.stop)
	})
}

// jumpTolerance is how far the clocks may drift apart, or a tick be late, before it is called a jump.
const jumpTolerance = 2 * time.Second

// watch is the watchdog.
func (k *Keeper) watch() {
	for {
		left := k.Left()
		if left <= k.grace {
			k.lose(k.overdue(left))
			return
		}
		select {
		case <-k.stop:
			return
		case <-time.After(min(k.tick, left-k.grace)):
		}
		k.compareClocks()
		k.wake()
	}
}

// compareClocks tells when the clocks do not show what should have passed since the last time: one of them was set, or
// nothing ran.
func (k *Keeper) compareClocks() {
	k.mu.Lock()
	wall, boot := k.store.opts.Now().Round(0), k.store.opts.Boottime()
	gap := boot - k.boot
	jump := wall.Sub(k.wall) - gap
	k.wall, k.boot = wall, boot
	k.mu.Unlock()
	if jump.Abs() > jumpTolerance || gap > k.tick+jumpTolerance {
		k.notify(KeeperEvent{Name: "clock-jump", Jump: jump, Gap: gap, Left: k.Left()})
	}
}

// overdue is the loss of a lease whose time is up.
func (k *Keeper) overdue(left time.Duration) *Loss {
	k.mu.Lock()
	defer k.mu.Unlock()
	if left <= 0 {
		return &Loss{Cause: CodeExpired, Err: errors.Join(errors.New("the lease expired before it could be renewed"), k.fault)}
	}
	err := k.fault
	if err == nil {
		err = errors.New("no renewal has come to an end in time")
	}
	return &Loss{Cause: CauseOverdue, Err: fmt.Errorf("the lease could not be renewed in time: %w", err)}
}

// The pauses between renewals that fail.
const (
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 5 * time.Second
)

// renew is the renewer: at each tick it looks whether the lease is still there, and renews it when half of it is over.
func (k *Keeper) renew() {
	defer k.stopped.Done()
	defer k.giveUp()
	backoff, next := firstBackoff, time.Duration(0)
	for {
		select {
		case <-k.stop:
			return
		case <-k.poke:
		}
		if loss := k.examine(); loss != nil {
			k.lose(loss)
			return
		}
		now := k.store.opts.Boottime()
		if k.Left() > k.Lease().term()/2 || now < next {
			continue
		}
		if k.renewOnce() {
			backoff, next = firstBackoff, 0
			continue
		}
		// The pauses end before the time does, so that what is healed late is still healed in time.
		pause := min(backoff, max((k.Left()-k.grace)/2, firstBackoff))
		next = k.store.opts.Boottime() + pause
		backoff = min(2*backoff, lastBackoff)
	}
}

// renewOnce makes one attempt. A failure is no loss by itself: the next look at the lease decides.
func (k *Keeper) renewOnce() bool {
	out, err := k.store.Renew(k.trying, k.Lease().HolderID, 0)
	k.mu.Lock()
	k.fault = err
	if err == nil {
		k.lease, k.ends = out.Lease, out.began+out.Lease.term()
	}
	k.mu.Unlock()
	if err != nil {
		k.notify(KeeperEvent{Name: "renew-failed", Err: err, Left: k.Left()})
		return false
	}
	k.notify(KeeperEvent{Name: "renewed", Lease: out.Lease, Left: k.Left()})
	return true
}

// examine reads the lease. Another holder, an expired, absent or corrupt lease, or something that is no lease file at all,
// is a loss, and so is a lease in a directory that has been moved away; a file that cannot be read at the moment is not.
func (k *Keeper) examine() *Loss {
	o, now, err := k.store.observe()
	if err != nil {
		if lastingFault(err) {
			return &Loss{Cause: codeIn(err), Err: err}
		}
		return nil
	}
	if refusal := holds(o, k.Lease().HolderID, now); refusal != nil {
		return &Loss{Cause: refusal.Code, Err: k.store.located(refusal)}
	}
	if err := k.store.CheckPath(); err != nil {
		return &Loss{Cause: codeIn(err), Err: err}
	}
	return nil
}

func lastingFault(err error) bool {
	switch codeIn(err) {
	case CodeCorrupt, regfile.CodeNotRegular, regfile.CodeTooLarge, regfile.CodeForeignOwner:
		return true
	}
	return false
}

func codeIn(err error) string {
	var coded interface{ ErrorCode() string }
	if errors.As(err, &coded) {
		return coded.ErrorCode()
	}
	return ""
}
