package dirwatch

import (
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
		time.Sleep(min(jitter(firstSleep<<(n-spins-1)), left))
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

// Crowd decides when to look again at something that many may wait for and one has for long. The first wait is ended by an
// event. Whoever was woken and lost is one of many; if all of them ran at each event they would take the processors from
// the one that has it, so each polls from then on, the more often the longer it has waited, which keeps the slowest wait
// near the median.
type Crowd struct {
	dirfd   int
	started time.Time
	watcher *Watcher
	lost    bool
}

// NewCrowd waits for names in the directory open as dirfd.
func NewCrowd(dirfd int) *Crowd { return &Crowd{dirfd: dirfd} }

// The interval of one that lost is pollUnderEvents at first, half of that after agingUnit, and so on.
const (
	agingUnit    = 400 * time.Millisecond
	shortestPoll = 500 * time.Microsecond
)

// Wait returns when looking again may be worth while, at most after left.
func (c *Crowd) Wait(left time.Duration) {
	switch {
	case c.lost:
		poll := pollUnderEvents * agingUnit / (agingUnit + time.Since(c.started))
		time.Sleep(min(jitter(max(poll, shortestPoll)), left))
	case c.watcher == nil:
		c.started = time.Now()
		c.watcher = New(c.dirfd)
	case c.watcher.Wait(min(jitter(c.watcher.Poll()), left)):
		c.lost = true
		c.Close()
	}
}

// Close ends the watch.
func (c *Crowd) Close() {
	if c.watcher != nil {
		c.watcher.Close()
		c.watcher = nil
	}
}

// jitter spreads d over 50 to 150 per cent of itself.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) }
