package doctor

import (
	"sync"
	"sync/atomic"
	"time"
)

// ScanOptions say how a tree is scanned.
type ScanOptions struct {
	Jobs          int // how many directories are looked at at once; 0 is 2
	MaxDepth      int // below each root; 0 is no bound
	OneFileSystem bool
	Huge          int64 // bytes from which a file is huge; 0 is 1 GiB
	Patience      time.Duration
}

// Hazard is something in a tree that hangs, misleads or blocks.
type Hazard struct {
	Condition string
	Path      string
	Detail    string
}

// Summary ends a scan.
type Summary struct {
	Entries     int64
	Directories int64
	Hazards     map[string]int64 // by condition
	Took        time.Duration
}

// scanner is one scan: threads that take directories from a stack, so that the stack stays small.
type scanner struct {
	opts ScanOptions

	mu      sync.Mutex
	more    sync.Cond
	stack   []job
	working int // jobs that are being done; one that hangs is taken off

	found       chan []Hazard // from the threads to the caller
	entries     atomic.Int64
	directories atomic.Int64
}

// job is a directory to look at.
type job struct {
	path  string
	depth int
	root  *scanRoot
}

// scanRoot is what the entries below a root are compared with.
type scanRoot struct {
	path string // physical
	dev  uint64
	uid  uint32
}

// thread is one of the scanner's, and where it is.
type thread struct {
	at    atomic.Pointer[string]
	since atomic.Int64 // when it got there, in ns; 0 when it is idle
	lost  atomic.Bool  // it was abandoned: what it still finds is not wanted
}

// Scan walks the trees and tells every hazard as it is found, in no order. It opens directories alone. A path whose filesystem
// does not answer is a hazard too, unresponsive, and the scan goes on behind it. progress, which may be nil, is called now and
// then with what was seen so far. An error of each ends the scan.
func Scan(roots []string, opts ScanOptions, each func(Hazard) error, progress func(Summary)) (Summary, error) {
	if opts.Jobs <= 0 {
		opts.Jobs = 2
	}
	if opts.Huge <= 0 {
		opts.Huge = 1 << 30
	}
	if opts.Patience <= 0 {
		opts.Patience = DefaultPatience
	}
	s := &scanner{opts: opts, found: make(chan []Hazard, 64)}
	s.more.L = &s.mu
	started := time.Now()
	total := Summary{Hazards: map[string]int64{}}
	tell := func(hazards []Hazard) error {
		for _, h := range hazards {
			total.Hazards[h.Condition]++
			if err := each(h); err != nil {
				return err
			}
		}
		return nil
	}
	if err := tell(s.plant(roots)); err != nil {
		return total, err
	}
	err := s.collect(tell, func() {
		if progress != nil {
			progress(s.summary(total, started))
		}
	})
	return s.summary(total, started), err
}

func (s *scanner) summary(total Summary, started time.Time) Summary {
	total.Entries, total.Directories, total.Took = s.entries.Load(), s.directories.Load(), time.Since(started)
	return total
}

// plant puts the roots on the stack.
func (s *scanner) plant(roots []string) (hazards []Hazard) {
	guard := NewGuard(s.opts.Patience)
	for _, path := range roots {
		var root *scanRoot
		var failed *Hazard
		if last, ok := guard.Do(path, func(func(string)) { root, failed = openRoot(path) }); !ok {
			hazards = append(hazards, unresponsive(last))
			continue
		}
		if failed != nil {
			hazards = append(hazards, *failed)
			continue
		}
		s.stack = append(s.stack, job{path: path, root: root})
	}
	return hazards
}

func unresponsive(path string) Hazard {
	return Hazard{Condition: "unresponsive", Path: path, Detail: "its filesystem does not answer"}
}

// collect runs the threads until nothing is left to look at, and tells what they find.
func (s *scanner) collect(tell func([]Hazard) error, progress func()) error {
	threads := make([]*thread, s.opts.Jobs)
	ended := make(chan *thread, s.opts.Jobs)
	begin := func() *thread {
		t := &thread{}
		go func() {
			s.work(t)
			if !t.lost.Load() {
				ended <- t
			}
		}()
		return t
	}
	for i := range threads {
		threads[i] = begin()
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	defer s.stop()
	for running := len(threads); running > 0; {
		select {
		case hazards := <-s.found:
			if err := tell(hazards); err != nil {
				return err
			}
		case <-ended:
			running--
		case <-tick.C:
			progress()
			for i, t := range threads {
				if path, hangs := t.hangs(s.opts.Patience); hangs {
					s.abandon(t)
					threads[i] = begin()
					if err := tell([]Hazard{unresponsive(path)}); err != nil {
						return err
					}
				}
			}
		}
	}
	for {
		select {
		case hazards := <-s.found:
			if err := tell(hazards); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// hangs reports whether the thread has been at one path for too long.
func (t *thread) hangs(patience time.Duration) (string, bool) {
	since := t.since.Load()
	if since == 0 || t.lost.Load() || time.Since(time.Unix(0, since)) < patience {
		return "", false
	}
	return *t.at.Load(), true
}

// touch says what the thread is about to touch.
func (t *thread) touch(path string) {
	t.at.Store(&path)
	t.since.Store(time.Now().UnixNano())
}

// abandon takes a hanging thread's job off.
func (s *scanner) abandon(t *thread) {
	t.lost.Store(true)
	s.finished(nil)
}

// stop lets the threads end, when nobody wants what they find any more.
func (s *scanner) stop() {
	s.mu.Lock()
	s.stack, s.working = nil, 0
	s.mu.Unlock()
	s.more.Broadcast()
}

// take waits for a directory; there is none when all are done.
func (s *scanner) take() (job, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.stack) == 0 && s.working > 0 {
		s.more.Wait()
	}
	if len(s.stack) == 0 {
		return job{}, false
	}
	j := s.stack[len(s.stack)-1]
	s.stack = s.stack[:len(s.stack)-1]
	s.working++
	return j, true
}

// finished gives back a job, with the directories that were found in it.
func (s *scanner) finished(below []job) {
	s.mu.Lock()
	s.stack = append(s.stack, below...)
	s.working--
	wake := len(below) > 1 || s.working == 0 // who waits has nothing to do otherwise: this thread takes the next one
	s.mu.Unlock()
	if wake {
		s.more.Broadcast()
	}
}

// work takes one directory after the other.
func (s *scanner) work(t *thread) {
	v := newVisit(s, t)
	for {
		j, ok := s.take()
		if !ok {
			return
		}
		below := v.directory(j)
		t.since.Store(0)
		if t.lost.Load() {
			return // its job was taken off
		}
		if len(v.hazards) > 0 {
			s.found <- v.hazards
			v.hazards = nil
		}
		s.finished(below)
	}
}
