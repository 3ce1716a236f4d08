package supervise

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Hold is what the wrapper holds while the command runs.
type Hold struct {
	Lost    <-chan error                   // gives the loss, once; the command is ended then
	Check   func()                         // called after the wrapper was stopped and continued, before the child continues; may hang
	Grace   func(lost error) time.Duration // how long ending may take, from now; nothing may run after that
	Passing func(sig unix.Signal)          // called before a signal is passed on to the child; may be nil
	Note    func(event string, n int)      // told of "terminating" and "killing", and how many processes that meets
}

// Result is how the command ended.
type Result struct {
	Status   int         // as a shell gives it
	Signal   unix.Signal // that ended it, or 0
	Lost     error       // why the wrapper ended it, or nil
	Leftover int         // descendants that were left alone or, after a loss, could not be ended
}

// Run waits for the child to end, passes signals on, and ends it when the hold is lost. What had arrived before it is passed on
// wherever it came from: the terminal may have sent it to a group in which there was no child yet. One that waited to become the
// command was there.
func (c *Child) Run(signals *Signals, hold Hold) Result {
	var check check
	from := noTerminal
	if c.waited {
		from = signals.place()
	}
	for _, sig := range signals.Arrived() {
		if sig == unix.SIGCONT {
			check.begin(hold, c.isStopped())
		} else if forward(sig, from) {
			c.pass(sig, hold)
		}
	}
	for {
		select {
		case <-c.exited:
			status, sig := c.Status()
			return Result{Status: status, Signal: sig, Leftover: c.leftover()}
		case lost := <-hold.Lost:
			return c.endLost(lost, hold)
		case <-c.stopped:
			// A shell waits for this process only: it has to stop too, to give the terminal back. SIGSTOP does that in any
			// group; the call returns when somebody has continued it, and that somebody's SIGCONT is handled next. When one
			// signal had stopped both, the child may have been continued before this is reached. A stopped wrapper ends
			// nothing, so a loss comes first.
			if lost := pending(hold.Lost); lost != nil {
				return c.endLost(lost, hold)
			}
			if c.isStopped() {
				_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
			}
		case s := <-signals.C():
			if s == unix.SIGCONT {
				check.begin(hold, c.isStopped())
			} else if sig := s.(unix.Signal); forward(sig, signals.place()) {
				c.pass(sig, hold)
			}
		case <-check.over:
			if lost := pending(hold.Lost); lost != nil {
				return c.endLost(lost, hold)
			}
			if check.end(hold) && check.waits {
				c.Signal(unix.SIGCONT)
			}
		}
	}
}

// pass passes a signal on.
func (c *Child) pass(sig unix.Signal, hold Hold) {
	if hold.Passing != nil {
		hold.Passing(sig)
	}
	c.Signal(sig)
}

// pending is a loss that has been given already, or nil.
func pending(lost <-chan error) error {
	select {
	case err := <-lost:
		return err
	default:
		return nil
	}
}

// check is a look at the hold after this process was stopped and continued. The look may take as long as it wants, on a disk
// that does not answer; losing the hold does not wait for it.
type check struct {
	over  chan struct{} // closed when it is over; nil when there is none
	waits bool          // the child is stopped, and is to be continued then
	again bool          // it was stopped and continued once more meanwhile
}

// begin begins a check. A child that does not wait was continued by a shell, with the whole group, and what stops it from
// now on counts.
func (c *check) begin(hold Hold, waits bool) {
	if c.over != nil {
		c.waits, c.again = c.waits || waits, true
		return
	}
	over := make(chan struct{})
	c.over, c.waits, c.again = over, waits, false
	go func() {
		defer close(over)
		hold.Check()
	}()
}

// end ends a check that is over, and reports whether what it has seen still counts; else another one has begun.
func (c *check) end(hold Hold) bool {
	c.over = nil
	if c.again {
		c.begin(hold, c.waits)
		return false
	}
	return true
}

// leftover counts what the command has left behind.
func (c *Child) leftover() int {
	select {
	case <-c.none:
		return 0
	default:
		return len(c.strangers.descendants())
	}
}

// Linger waits, after the command has ended, until nothing of it is left, at most for patience; a signal that ends wrappers
// ends the wait. It returns how many descendants are left.
func (c *Child) Linger(patience time.Duration, signals *Signals) int {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline) && c.leftover() > 0; {
		select {
		case <-c.none:
		case sig := <-signals.C():
			if Ends(sig) {
				return c.leftover()
			}
		case <-time.After(lookRound):
		}
	}
	return c.leftover()
}

func (c *Child) endLost(lost error, hold Hold) Result {
	left := c.End(hold.Grace(lost), hold.Note)
	status, sig := c.Status()
	return Result{Status: status, Signal: sig, Lost: lost, Leftover: left}
}

const (
	reapRound    = 2 * time.Millisecond
	lookRound    = 20 * time.Millisecond
	chaseRounds  = 1000            // of children between two looks at all descendants
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
		met := c.strangers.signalDescendants(unix.SIGTERM)
		c.strangers.signalDescendants(unix.SIGCONT)
		note("terminating", met)
		if c.gone(started.Add(grace * 3 / 4)) {
			return 0
		}
	}
	// Telling comes after: this is what must be in time.
	note("killing", c.kill())
	// Each round finds what was forked since the last one; a killed parent's children fall to this process.
	for giveUp := time.Now().Add(max(grace/4, leastReaping)); !c.gone(time.Now().Add(reapRound)); c.kill() {
		if time.Now().After(giveUp) {
			return len(c.strangers.descendants())
		}
		for n := 0; n < chaseRounds && c.strangers.signalChildren(unix.SIGKILL) > 0; n++ {
		}
	}
	return 0
}

// kill sends SIGKILL to everything and returns how many descendants it met.
func (c *Child) kill() int {
	met := c.strangers.signalDescendants(unix.SIGKILL)
	c.Signal(unix.SIGKILL)
	return met
}

// gone waits until the child and every descendant have ended, at most until the deadline.
func (c *Child) gone(deadline time.Time) bool {
	if len(c.strangers) > 0 {
		return c.goneAmongStrangers(deadline)
	}
	select {
	case <-c.none:
		return true
	case <-time.After(time.Until(deadline)):
		return false
	}
}

// goneAmongStrangers is gone where other children live on, so that there is nothing to wait for but what /proc shows.
func (c *Child) goneAmongStrangers(deadline time.Time) bool {
	select {
	case <-c.exited:
	case <-c.none:
		return true
	case <-time.After(time.Until(deadline)):
		return false
	}
	for len(c.strangers.descendants()) > 0 {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(min(lookRound, time.Until(deadline)))
	}
	return true
}
