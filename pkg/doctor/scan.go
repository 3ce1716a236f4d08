package doctor

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ScanOptions say how a tree is scanned.
type ScanOptions struct {
	Jobs          int // how many directories are looked at at once; 0 is 2
	MaxDepth      int // below each root; 0 is no bound
	OneFileSystem bool
	Huge          int64    // bytes from which a file is huge; 0 is 1 GiB
	Only          []string // of Hazards; nil is all. What keeps the scan from seeing something is told all the same
	Patience      time.Duration
}

// Hazard is something in a tree that hangs, misleads or blocks.
type Hazard struct {
	Condition string
	Path      string
	Detail    string
}

// byName are the hazards that a directory's own list shows, with the type of each entry.
var byName = []string{"fifo", "socket", "device", "dangling", "symlink-loop", "symlink-escapes-root", "name-control-characters", "name-not-utf8", "case-collision"}

// byAttributes are those for which each entry has to be asked for.
var byAttributes = []string{"setuid", "world-writable", "foreign-owner", "huge", "sparse", "hard-linked", "mount-point"}

// blind are those that hide what is behind them: a scan that left them out would pass over something.
var blind = []string{"unreadable", Unresponsive}

// Hazards are the conditions that a scan tells.
func Hazards() []string { return slices.Concat(byName, byAttributes, blind) }

// Summary ends a scan.
type Summary struct {
	Entries     int64
	Directories int64
	Hazards     map[string]int64 // by condition
	Took        time.Duration
}

// scanner is one scan: threads that take jobs from a stack, so that the stack stays small.
type scanner struct {
	opts       ScanOptions
	guard      *Guard
	wanted     map[string]bool // conditions
	attributes bool            // each entry is asked for its attributes

	mu      sync.Mutex
	more    sync.Cond
	stack   []job
	working int // jobs that are being done; one that hangs is taken off

	found       chan []Hazard // from the threads to the caller
	entries     atomic.Int64
	directories atomic.Int64
}

// job is something to look at that may hang: where another filesystem may begin.
type job struct {
	path  string
	depth int
	root  *scanRoot
	link  bool     // a symbolic link; a directory otherwise
	rest  *reading // the directory has been read so far
}

// later is the job of reading the rest of its directory.
func (j job) later(r *reading) job {
	j.rest = r
	return j
}

// reading is a directory that is open, and was read so far.
type reading struct {
	fd    int
	list  []byte // of entries that were not looked at yet
	cases caseSet
}

// scanRoot is what the entries below a root are compared with.
type scanRoot struct {
	path string // physical
	dev  uint64
	uid  uint32
}

// Scan walks the trees and tells every hazard as it is found, in no order. It opens directories alone. A path whose filesystem
// does not answer is a hazard too, unresponsive, and the scan goes on behind it. progress, which may be nil, is called now and
// then with what was seen so far. An error of each ends the scan.
func Scan(roots []string, opts ScanOptions, each func(Hazard) error, progress func(Summary)) (Summary, error) {
	opts.Jobs, opts.Huge, opts.Patience = cmp.Or(opts.Jobs, 2), cmp.Or(opts.Huge, 1<<30), cmp.Or(opts.Patience, DefaultPatience)
	s := newScanner(roots, opts)
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

func newScanner(roots []string, opts ScanOptions) *scanner {
	s := &scanner{opts: opts, guard: NewGuard(opts.Patience, roots...), found: make(chan []Hazard, 64), wanted: map[string]bool{}}
	s.more.L = &s.mu
	conditions := opts.Only
	if conditions == nil {
		conditions = Hazards()
	}
	for _, c := range slices.Concat(conditions, blind) {
		s.wanted[c] = true
		s.attributes = s.attributes || slices.Contains(byAttributes, c)
	}
	return s
}

func (s *scanner) summary(total Summary, started time.Time) Summary {
	total.Entries, total.Directories, total.Took = s.entries.Load(), s.directories.Load(), time.Since(started)
	return total
}

// plant puts the roots on the stack.
func (s *scanner) plant(roots []string) (hazards []Hazard) {
	for _, path := range roots {
		var root *scanRoot
		var failed *Hazard
		if silent := s.guard.Do(path, func(func(string)) { root, failed = openRoot(path) }); silent != nil {
			hazards = append(hazards, unresponsive(*silent))
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

func unresponsive(l Lost) Hazard { return Hazard{Unresponsive, l.Path, l.Detail()} }

// collect runs the threads until nothing is left to look at, and tells what they find.
func (s *scanner) collect(tell func([]Hazard) error, progress func()) error {
	threads := make([]*visit, s.opts.Jobs)
	ended := make(chan struct{}, s.opts.Jobs)
	start := func() *visit {
		v := newVisit(s)
		go func() {
			s.work(v)
			ended <- struct{}{}
		}()
		return v
	}
	for i := range threads {
		threads[i] = start()
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
			for i, v := range threads {
				if v.abandon(s.opts.Patience) {
					hazards := v.takeOver()
					s.finished()
					threads[i] = start()
					if err := tell(hazards); err != nil {
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

// stop lets the threads end, when nobody wants what they find any more.
func (s *scanner) stop() {
	s.mu.Lock()
	s.stack, s.working = nil, 0
	s.mu.Unlock()
	s.more.Broadcast()
}

// take waits for a job; there is none when all are done.
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

// add puts jobs on the stack; the last one is taken first.
func (s *scanner) add(jobs []job) {
	if len(jobs) == 0 {
		return
	}
	s.mu.Lock()
	s.stack = append(s.stack, jobs...)
	s.mu.Unlock()
	s.more.Broadcast()
}

// finished gives back a job.
func (s *scanner) finished() {
	s.mu.Lock()
	s.working--
	all := s.working == 0
	s.mu.Unlock()
	if all {
		s.more.Broadcast()
	}
}

// work does one job after the other.
func (s *scanner) work(v *visit) {
	for {
		j, ok := s.take()
		if !ok {
			return
		}
		v.do(j)
		s.finished()
	}
}
