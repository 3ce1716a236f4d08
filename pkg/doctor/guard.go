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

// Each looks at every path in its own time: look runs beside the caller, and when it hangs at a path that path is lost, and the
// next ones are looked at by another thread. The order of the paths is kept. An error of found or lost ends it.
func Each[T any](g *Guard, next func() (string, bool), look func(path string) T, found func(T) error, lost func(path string) error) error {
	in, out := looker(look)
	defer func() { close(in) }()
	timer := time.NewTimer(g.patience)
	defer timer.Stop()
	for path, ok := next(); ok; path, ok = next() {
		in <- path
		timer.Reset(g.patience)
		select {
		case v := <-out:
			if err := found(v); err != nil {
				return err
			}
		case <-timer.C:
			if err := lost(path); err != nil {
				return err
			}
			close(in)
			in, out = looker(look)
		}
	}
	return nil
}

// looker starts a goroutine that looks at what it is given, one after the other. One that hangs gives its result to nobody.
func looker[T any](look func(string) T) (in chan string, out chan T) {
	in, out = make(chan string), make(chan T, 1)
	go func() {
		for path := range in {
			out <- look(path)
		}
	}()
	return in, out
}
