package lease

import (
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"holdfast/pkg/claim"
	"holdfast/pkg/procid"
	"holdfast/pkg/regfile"
)

// fileMode is the mode of a new lease file and journal, under the umask.
const fileMode = 0o666

// Options are what a Store takes from outside. The zero value is right for a program.
type Options struct {
	Tool         string                           // named in claims; default "holdfast"
	Now          func() time.Time                 // the wall clock; default time.Now
	Boottime     func() time.Duration             // a clock that counts suspended time; default CLOCK_BOOTTIME
	NewID        func() string                    // UUIDs; default random ones
	Self         func() (procid.Identity, error)  // default procid.Self
	KnownAs      string                           // the path by which others find the lease file; default that of Open
	AllowMissing bool                             // a directory that does not exist reads as no lease
	Observing    func(l *Lease, of time.Duration) // told when an observation begins
	Entering     func(e Entering)                 // told again and again while a mutation waits for the claim
}

// intervals are the protocol's times, the size of its journal, and the places where tests stop a mutation.
type intervals struct {
	claimBound   time.Duration
	observe      time.Duration // between looks at a lease under observation
	tick         time.Duration // a keeper's longest sleep
	compactAbove int64         // bytes of a journal
	at           func(step string)
}

// Entering is a wait for a claim that another has.
type Entering struct {
	Waited  time.Duration
	Inspect func() (claim.Inspection, error) // looks at the claim now
}

func defaultIntervals() intervals {
	return intervals{
		claimBound: 5 * time.Second, observe: 250 * time.Millisecond, tick: time.Second, compactAbove: compactAbove,
		at: func(string) {},
	}
}

// Store is one lease file and the files beside it.
type Store struct {
	dir  *regfile.Dir // nil when the directory is missing and that is allowed
	path string
	name string
	opts Options
	iv   intervals

	journal atomic.Pointer[known]
	wrote   atomic.Bool // a line of the journal, or has tried to
}

// Open opens the directory of the lease file at path. Nothing is created. Errors are *regfile.Error, of code
// directory-invalid or io.
func Open(path string, opts Options) (*Store, error) {
	s := &Store{path: path, name: filepath.Base(path), opts: opts, iv: defaultIntervals()}
	s.opts.setDefaults()
	if s.opts.KnownAs == "" {
		s.opts.KnownAs = path
	}
	dir, err := regfile.OpenDir(filepath.Dir(path))
	if err != nil {
		if opts.AllowMissing && regfile.IsAbsent(err) {
			return s, nil
		}
		return nil, err
	}
	s.dir = dir
	return s, nil
}

func (o *Options) setDefaults() {
	if o.Tool == "" {
		o.Tool = "holdfast"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Boottime == nil {
		o.Boottime = boottime
	}
	if o.NewID == nil {
		o.NewID = uuid.NewString
	}
	if o.Self == nil {
		o.Self = sync.OnceValues(procid.Self) // it does not change while the process lives
	}
	if o.Observing == nil {
		o.Observing = func(*Lease, time.Duration) {}
	}
}

// Close releases the directory.
func (s *Store) Close() error {
	if s.dir == nil {
		return nil
	}
	return s.dir.Close()
}

// Path is the lease file's path.
func (s *Store) Path() string { return s.path }

func (s *Store) claimName() string   { return s.name + ".mutex" }
func (s *Store) stageName() string   { return s.name + ".stage" }
func (s *Store) journalName() string { return s.name + ".journal" }

// who is this process as it enters the claim.
func (s *Store) who(op string) claim.Who {
	self, _ := s.opts.Self() // without a start key the evidence proves less, and the claim excludes as well
	who := claim.Who{Tool: s.opts.Tool, Op: op, Token: s.opts.NewID(), Self: self}
	if s.opts.Entering != nil {
		who.Waiting = func(waited time.Duration) { s.opts.Entering(Entering{Waited: waited, Inspect: s.InspectClaim}) }
	}
	return who
}

// snapshot reads the lease file's bytes; nil when it is absent. The error is a *regfile.Error.
func (s *Store) snapshot() (*regfile.Snapshot, error) {
	if s.dir == nil {
		return nil, nil
	}
	snap, err := s.dir.ReadOwned(s.name, regfile.DefaultLimit)
	if regfile.IsAbsent(err) {
		return nil, nil
	}
	return snap, err
}

// parse makes sense of a snapshot. The error is a *Refusal of code corrupt.
func (s *Store) parse(snap *regfile.Snapshot) (Observed, error) {
	if snap == nil {
		return Observed{}, nil
	}
	l, err := Parse(snap.Bytes)
	if err != nil {
		return Observed{}, corrupt(CodeCorrupt, s.path, snap.Fingerprint(), err)
	}
	return Observed{Lease: l, Bytes: snap.Bytes}, nil
}

// read observes the lease file. Errors: *regfile.Error, or a *Refusal of code corrupt.
func (s *Store) read() (Observed, error) {
	snap, err := s.snapshot()
	if err != nil {
		return Observed{}, err
	}
	return s.parse(snap)
}

// observe reads the lease file and the clock. The clock is read last: what is said of the lease is said of a moment at
// which these bytes had been seen.
func (s *Store) observe() (Observed, time.Time, error) {
	o, err := s.read()
	return o, s.opts.Now(), err
}

// located gives a refusal of a pure decision its path.
func (s *Store) located(r *Refusal) error {
	if r == nil {
		return nil
	}
	if r.Path == "" {
		r.Path = s.path
	}
	return r
}

// Verify answers a Check. It reads the lease file and nothing else. The lease is returned where it was readable; a
// predicate that does not hold is a *Refusal.
func (s *Store) Verify(c Check) (*Lease, error) {
	o, now, err := s.observe()
	if err != nil {
		return nil, err
	}
	return o.Lease, s.located(c.decide(o, now))
}

// CheckPath fails, with a *Refusal of code directory-moved, when the path that others know leads to another directory than the
// one that was opened, or to none: nobody else sees then what is done here. A path that may not be looked at proves nothing.
func (s *Store) CheckPath() error {
	if s.dir == nil {
		return nil
	}
	known := filepath.Dir(s.opts.KnownAs)
	if here, err := s.dir.IsAt(known); here || err != nil {
		return nil
	}
	return &Refusal{Code: CodeDirectoryMoved, Path: known}
}

var errNoDirectory = errors.New("the directory of the lease does not exist")
