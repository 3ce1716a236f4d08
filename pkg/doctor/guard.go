package doctor

import (
	"sync/atomic"
	"time"
)

// DefaultPatience is how long a filesystem may take to answer before the path is called unresponsive.
const DefaultPatience = 2 * time.Second

// Guard does work that may hang in a filesystem. What hangs is abandoned with its thread: a process that is stuck in the kernel
// cannot be stopped from inside, so a program that uses a Guard leaves its exit to another process.
type Guard struct {
	patience time.Duration
}

// NewGuard makes one; patience 0 is the default.
func NewGuard(patience time.Duration) *Guard {
	if patience == 0 {
		patience = DefaultPatience
	}
	return &Guard{patience}
}

// Do calls f, which says with touch what path it is about to touch, and reports whether f returned. It gives up when f has not
// touched anything for the whole patience, and returns the path that was touched last.
func (g *Guard) Do(path string, f func(touch func(path string))) (last string, returned bool) {
	var at atomic.Pointer[string]
	at.Store(&path)
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(func(p string) { at.Store(&p) })
	}()
	for seen := at.Load(); ; {
		select {
		case <-done:
			return "", true
		case <-time.After(g.patience):
		}
		now := at.Load()
		if now == seen {
			select {
			case <-done:
				return "", true
			default:
				return *now, false
			}
		}
		seen = now
	}
}

// Each looks at one thing after the other, in order. look runs beside the caller and says with touch what path it is about to touch,
// at first that of the thing; when it hangs there, lost is told, and another thread goes on with the next thing. found and lost are
// never called at the same time. An error of either ends it.
func Each[T, V any](g *Guard, next func() (T, bool), pathOf func(T) string, look func(thing T, touch func(string)) V, found func(V) error, lost func(path string) error) error {
	e := &each[T, V]{next: next, pathOf: pathOf, look: look, found: found}
	tick := time.NewTicker(max(g.patience/8, time.Millisecond))
	defer tick.Stop()
	for {
		w := &walker{}
		ended := make(chan error, 1)
		go func() { ended <- e.walk(w) }()
		for hangs := false; !hangs; {
			select {
			case err := <-ended:
				return err
			case <-tick.C:
				hangs = w.abandon(g.patience)
			}
		}
		if err := lost(*w.at.Load()); err != nil {
			return err
		}
	}
}

type each[T, V any] struct {
	next   func() (T, bool)
	pathOf func(T) string
	look   func(T, func(string)) V
	found  func(V) error
}

// walk goes on until nothing is left, or it is abandoned at a thing that hangs: then what it comes back with is wanted by nobody.
func (e *each[T, V]) walk(w *walker) error {
	for {
		thing, ok := e.next()
		if !ok {
			return nil
		}
		w.touch(e.pathOf(thing))
		w.begin()
		v := e.look(thing, w.touch)
		if !w.end() {
			return nil
		}
		if err := e.found(v); err != nil {
			return err
		}
	}
}

// walker is a thread of Each or of a scan, and where it is.
type walker struct {
	state atomic.Int32
	steps atomic.Int64           // one more at each thing that it touches
	at    atomic.Pointer[string] // the path that it touches, where it says one

	seen  int64 // steps, by whoever watches it
	since time.Time
}

// The states of a walker. What it does while it is idle, reading what to look at and telling what was found, may take its time.
const (
	idle int32 = iota
	looking
	abandoned
)

func (w *walker) touch(path string) {
	w.at.Store(&path)
	w.steps.Add(1)
}

// begin is called before something that may hang.
func (w *walker) begin() {
	w.steps.Add(1)
	w.state.Store(looking)
}

// end is called after it, and reports whether it was in time: what the walker had is another's otherwise.
func (w *walker) end() bool { return w.state.CompareAndSwap(looking, idle) }

// abandon gives a walker up that was seen at the same step for too long, and reports whether it did. It is called now and then, by
// one thread.
func (w *walker) abandon(patience time.Duration) bool {
	if steps := w.steps.Load(); steps != w.seen || w.state.Load() != looking {
		w.seen, w.since = steps, time.Now()
		return false
	}
	return time.Since(w.since) >= patience && w.state.CompareAndSwap(looking, abandoned)
}
