package dirwatch

import (
	"context"
	"math/rand/v2"
	"runtime"
	"time"
)

// Waiter decides when to look again at a claim that another has. Claims are held for a fraction of a millisecond, or as
// long as a disk takes to sync, so it begins with looks in quick succession and goes over to events when the claim stays.
// It costs nothing until its first Wait.
type Waiter struct {
	dirfd   int
	waits   int
	watcher *Watcher // nil before events are needed
}

// NewWaiter waits for names in the directory open as dirfd.
func NewWaiter(dirfd int) *Waiter { return &Waiter{dirfd: dirfd} }

// The first looks: without sleeping, since the holder mostly runs on another processor at this moment; then after sleeps
// that double from firstSleep, 3 ms in all.
const (
	spins      = 4
	sleeps     = 6
	firstSleep = 50 * time.Microsecond
)

// Wait returns when the claim may be free, at most after left.
func (w *Waiter) Wait(left time.Duration) {
	w.waits++
	switch n := w.waits; {
	case n <= spins:
		runtime.Gosched()
	case n <= spins+sleeps:
		nap(min(jitter(firstSleep<<(n-spins-1)), left))
	case w.watcher == nil:
		w.watcher = New(w.dirfd) // and look again now: the name may have gone before the watch began
	default:
		w.watcher.Wait(min(jitter(w.watcher.Poll()), left))
	}
}

// Close ends the watch.
func (w *Waiter) Close() {
	if w.watcher != nil {
		w.watcher.Close()
	}
}

// Crowd decides when to look again at something that many may wait for and one has for long. An event ends a wait.
// Whoever was woken and lost is one of many; if all of them ran at each event they would take the processors from the one
// that has it, so a loser sleeps before it waits for the next event, the shorter the longer it has waited, which keeps
// the slowest wait near the median.
type Crowd struct {
	dirfd   int
	names   []string
	started time.Time
	watcher *Watcher
	woken   bool
}

// NewCrowd waits for the names to go from the directory open as dirfd.
func NewCrowd(dirfd int, names ...string) *Crowd { return &Crowd{dirfd: dirfd, names: names} }

// The sleep of a loser is losersSleep at first, half of that after agingUnit, and so on.
const (
	losersSleep   = 4 * time.Millisecond
	agingUnit     = 400 * time.Millisecond
	shortestSleep = 500 * time.Microsecond
	pollCrowd     = 25 * time.Millisecond // where there are no events
)

// heed is how soon a wait notices that its context has ended.
const heed = 200 * time.Millisecond

// Wait returns when looking again may be worth while, at most after left, and soon after ctx has ended.
func (c *Crowd) Wait(ctx context.Context, left time.Duration) {
	for end := time.Now().Add(left); left > 0 && ctx.Err() == nil; left = time.Until(end) {
		if c.once(min(left, heed)) {
			return
		}
	}
}

// once is one piece of a wait; true says that looking again may be worth while.
func (c *Crowd) once(left time.Duration) bool {
	switch {
	case c.watcher == nil:
		c.started = time.Now()
		c.watcher = New(c.dirfd, c.names...) // and look again now: it may have gone before the watch began
		return true
	case c.woken:
		c.woken = false
		sleep := losersSleep * agingUnit / (agingUnit + time.Since(c.started))
		nap(min(jitter(max(sleep, shortestSleep)), left))
		return true
	}
	if !c.watcher.events() {
		time.Sleep(min(jitter(pollCrowd), left))
		return true
	}
	c.woken = c.watcher.Wait(left)
	return c.woken
}

// Close ends the watch.
func (c *Crowd) Close() {
	if c.watcher != nil {
		c.watcher.Close()
	}
}

// jitter spreads d over 50 to 150 per cent of itself.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) }
