package doctor

import (
	"path/filepath"
	"sync/atomic"
	"time"
)

// DefaultPatience is how long a filesystem may take to answer before the path is called unresponsive.
const DefaultPatience = 2 * time.Second

// Guard does work that may hang in a filesystem. What hangs is abandoned with its thread: a process that is stuck in the kernel
// cannot be stopped from inside, so a program that uses a Guard leaves its exit to another process. It remembers what hung: that
// is not waited for again, nor is anything in a directory where two things hung, or on a filesystem where eight did.
type Guard struct {
	patience time.Duration
	hangs    *hangs
}

// NewGuard makes one; patience 0 is the default. The named paths are looked at whatever hangs beside them.
func NewGuard(patience time.Duration, named ...string) *Guard {
	if patience == 0 {
		patience = DefaultPatience
	}
	return &Guard{patience, newHangs(named)}
}

// HopelessLink reports whether a symbolic link is not to be followed because of what hung before; leads is where it leads by its
// text.
func (g *Guard) HopelessLink(link, leads string) bool {
	return g.hangs.hopelessLink(link, leads, mountPoints)
}

// Leads is where a symbolic link leads first, by its text, not cleaned: what is before a ".." may be a link itself.
func Leads(link, text string) string {
	if filepath.IsAbs(text) {
		return text
	}
	return filepath.Dir(link) + "/" + text
}

// Lost is a path that was given up.
type Lost struct {
	Path   string
	Waited bool // it hangs itself; otherwise what hangs is around it
}

// Detail says why.
func (l Lost) Detail() string {
	if l.Waited {
		return "its filesystem does not answer"
	}
	return "it was not looked at: it or what is around it has not answered before"
}

// Do calls f, which says with touch what path it is about to touch. It gives up when f has not touched anything for the whole
// patience, and returns what was touched last; nil when f has returned.
func (g *Guard) Do(path string, f func(touch func(path string))) *Lost {
	if g.hangs.hopeless(path) {
		return &Lost{Path: path}
	}
	w := &walker{}
	done := make(chan struct{})
	w.touch(path)
	w.begin()
	go func() {
		f(w.touch)
		if w.end() {
			close(done)
		}
	}()
	if g.watch(w, done) {
		return nil
	}
	return g.lost(w)
}

// watch waits until a walker is done, or is abandoned.
func (g *Guard) watch(w *walker, done <-chan struct{}) (ended bool) {
	tick := time.NewTicker(max(g.patience/8, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-done:
			return true
		case <-tick.C:
			if w.abandon(g.patience) {
				return false
			}
		}
	}
}

func (g *Guard) lost(w *walker) *Lost {
	if leads := w.leads.Load(); leads != nil {
		g.notedLink(*w.at.Load(), *leads)
		return &Lost{Path: *w.at.Load(), Waited: true}
	}
	return g.noted(*w.at.Load())
}

// noted remembers what was waited for in vain.
func (g *Guard) noted(path string) *Lost {
	g.hangs.note(path, mountPoints())
	return &Lost{Path: path, Waited: true}
}

// notedLink remembers a link whose end was waited for in vain.
func (g *Guard) notedLink(link, leads string) { g.hangs.noteLink(link, leads, mountPoints()) }

// Each looks at one thing after the other, in order. look runs beside the caller and says with touch what path it is about to touch,
// at first that of the thing, and with follow which link it follows; when it hangs there, lost is told, and another thread goes on
// with the next thing. found and lost are never called at the same time. An error of either ends it.
func Each[T, V any](g *Guard, next func() (T, bool), pathOf func(T) string, look func(thing T, touch func(string), follow func(link, leads string)) V, found func(V) error, lost func(Lost) error) error {
	e := &each[T, V]{guard: g, next: next, pathOf: pathOf, look: look, found: found, lost: lost}
	for {
		w := &walker{}
		var err error
		done := make(chan struct{})
		go func() {
			if failed := e.walk(w); w.state.Load() != abandoned {
				err = failed
				close(done)
			}
		}()
		if g.watch(w, done) {
			return err
		}
		if err := lost(*g.lost(w)); err != nil {
			return err
		}
	}
}

type each[T, V any] struct {
	guard  *Guard
	next   func() (T, bool)
	pathOf func(T) string
	look   func(thing T, touch func(string), follow func(link, leads string)) V
	found  func(V) error
	lost   func(Lost) error
}

// walk goes on until nothing is left, or it is abandoned at a thing that hangs: then what it comes back with is wanted by nobody.
func (e *each[T, V]) walk(w *walker) (err error) {
	for err == nil {
		thing, ok := e.next()
		if !ok {
			return nil
		}
		path := e.pathOf(thing)
		if e.guard.hangs.hopeless(path) {
			err = e.lost(Lost{Path: path})
			continue
		}
		w.touch(path)
		w.begin()
		v := e.look(thing, w.touch, w.follow)
		if !w.end() {
			return nil
		}
		err = e.found(v)
	}
	return err
}

// walker is a thread that a Guard or a scan watches, and where it is.
type walker struct {
	state atomic.Int32
	steps atomic.Int64           // one more at each thing that it touches
	at    atomic.Pointer[string] // the path that it touches, where it says one
	leads atomic.Pointer[string] // where that leads, when it is a link that is followed

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
	w.leads.Store(nil)
	w.steps.Add(1)
}

func (w *walker) follow(link, leads string) {
	w.touch(link)
	w.leads.Store(&leads)
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
