package supervise

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Hold is what the wrapper holds while the command runs.
type Hold struct {
	Lost  <-chan error                   // gives the loss, once; the command is ended then
	Check func()                         // called after the wrapper was stopped and continued, before the child continues
	Grace func(lost error) time.Duration // how long ending may take, from now; nothing may run after that
	Note  func(event string, n int)      // told of "terminating" and "killing", and how many processes that meets
}

// Result is how the command ended.
type Result struct {
	Status   int         // as a shell gives it
	Signal   unix.Signal // that ended it, or 0
	Lost     error       // why the wrapper ended it, or nil
	Leftover int         // descendants that were left alone or, after a loss, could not be ended
}

// Run waits for the child to end, passes signals on, and ends it when the hold is lost.
func (c *Child) Run(signals *Signals, hold Hold) Result {
	for {
		select {
		case <-c.exited:
			status, sig := c.Status()
			return Result{Status: status, Signal: sig, Leftover: len(descendants())}
		case lost := <-hold.Lost:
			return c.endLost(lost, hold)
		case <-c.stopped:
			// A shell waits for this process only: it has to stop too, to give the terminal back. SIGSTOP does that in any
			// group; the call returns when somebody has continued it, and that somebody's SIGCONT is handled next.
			_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
		case s := <-signals.C():
			if s == unix.SIGCONT {
				hold.Check()
				select {
				case lost := <-hold.Lost:
					return c.endLost(lost, hold)
				default:
					c.Signal(unix.SIGCONT)
				}
			} else if sig := s.(unix.Signal); forward(sig, inForeground()) {
				c.Signal(sig)
			}
		}
	}
}

func (c *Child) endLost(lost error, hold Hold) Result {
	left := c.End(hold.Grace(lost), hold.Note)
	status, sig := c.Status()
	return Result{Status: status, Signal: sig, Lost: lost, Leftover: left}
}

const (
	reapRound    = 2 * time.Millisecond
	leastReaping = 2 * time.Second // also when the grace is over: leaving something running is worse than being late
)

// End ends the child and all descendants within the grace: SIGTERM to the child at once, to all after half of it, SIGKILL
// after three quarters, and at once when there is no grace. It returns how many could not be ended.
func (c *Child) End(grace time.Duration, note func(event string, n int)) int {
	started := time.Now()
	if grace > 0 {
		note("terminating", 1)
		c.Signal(unix.SIGTERM)
		c.Signal(unix.SIGCONT) // a stopped process takes no signal but this one
		if c.gone(started.Add(grace / 2)) {
			return 0
		}
		note("terminating", len(descendants()))
		signalDescendants(unix.SIGTERM)
		signalDescendants(unix.SIGCONT)
		if c.gone(started.Add(grace * 3 / 4)) {
			return 0
		}
	}
	note("killing", len(descendants()))
	// Each round finds what was forked since the last one; a killed parent's children fall to this process.
	for giveUp := time.Now().Add(max(grace/4, leastReaping)); ; {
		c.Signal(unix.SIGKILL)
		signalDescendants(unix.SIGKILL)
		if c.gone(time.Now().Add(reapRound)) {
			return 0
		}
		if time.Now().After(giveUp) {
			return len(descendants())
		}
	}
}

// gone waits until the child and every descendant have ended, at most until the deadline.
func (c *Child) gone(deadline time.Time) bool {
	select {
	case <-c.none:
		return true
	case <-time.After(time.Until(deadline)):
		return false
	}
}
