package fence

import (
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"holdfast/pkg/claim"
	"holdfast/pkg/procid"
	"holdfast/pkg/regfile"
)

// The names in a session directory, shared with the other implementation.
const (
	ClaimName  = "entwurf-owner.json"
	TxName     = "entwurf-owner.tx"
	HoldName   = "entwurf-owner.hold"
	BreaksName = "entwurf-owner.breaks.jsonl"
	tempPrefix = ClaimName + ".tmp-"
)

// claimMode is the mode of the files in a session directory: what an agent does there is its owner's business.
const claimMode = 0o600

// Options are what a Fence takes from outside. The zero value is right for a program.
type Options struct {
	// Waiting, when it is set, is told again and again while a claim file is waited for, with a look at it.
	Waiting func(inspect func() (claim.Inspection, error), waited time.Duration)

	Tool  string                                               // named in transaction files; default "holdfast"
	Now   func() time.Time                                     // the wall clock; default time.Now
	NewID func() string                                        // UUIDs; default random ones
	Self  func() (procid.Identity, error)                      // default procid.Self
	Judge func(rec procid.Identity, local bool) procid.Verdict // default procid.Judge
	Owner func(pid int) (procid.Identity, error)               // default procid.Of
}

func (o *Options) setDefaults() {
	if o.Tool == "" {
		o.Tool = "holdfast"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = uuid.NewString
	}
	if o.Self == nil {
		o.Self = sync.OnceValues(procid.Self) // it does not change while the process lives
	}
	if o.Judge == nil {
		o.Judge = procid.Judge
	}
	if o.Owner == nil {
		o.Owner = procid.Of
	}
}

// intervals are the protocol's times, and the places where tests stop a transaction.
type intervals struct {
	txBound time.Duration // waiting for the transaction file
	at      func(step string)
}

func defaultIntervals() intervals {
	return intervals{txBound: 2 * time.Second, at: func(string) {}}
}

// Fence is one session directory.
type Fence struct {
	dir      *regfile.Dir
	selected string // S: absolute and clean, symlinks kept
	resource string // R: its real path
	created  bool   // by Open
	opts     Options
	iv       intervals
}

// Open opens the session directory at path; with create it is made when it does not exist (not its parents). Errors are
// *regfile.Error, of code directory-invalid or io.
func Open(path string, create bool, opts Options) (*Fence, error) {
	f := &Fence{opts: opts, iv: defaultIntervals()}
	f.opts.setDefaults()
	var err error
	if f.selected, err = filepath.Abs(path); err != nil {
		return nil, regfile.IOError("resolve", path, err)
	}
	if !utf8.ValidString(f.selected) {
		return nil, invalid(path, errors.New("the path is not UTF-8"))
	}
	if create {
		if f.created, err = makeDirectory(f.selected); err != nil {
			return nil, err
		}
	}
	if err := f.resolve(); err != nil {
		f.unmake()
		return nil, err
	}
	return f, nil
}

// makeDirectory reports whether this very call made the directory.
func makeDirectory(path string) (bool, error) {
	err := regfile.Retry(func() error { return unix.Mkdir(path, 0o700) })
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.EEXIST):
		return false, nil
	}
	return false, regfile.IOError("create directory", path, err)
}

func (f *Fence) resolve() (err error) {
	if f.resource, err = filepath.EvalSymlinks(f.selected); err != nil {
		return invalid(f.selected, err)
	}
	if !utf8.ValidString(f.resource) {
		return invalid(f.resource, errors.New("the path is not UTF-8"))
	}
	f.dir, err = regfile.OpenDir(f.resource)
	return err
}

func invalid(path string, err error) error {
	return &regfile.Error{Code: regfile.CodeDirectoryInvalid, Path: path, Err: bare(err)}
}

// bare is the errno in an error of package os or path/filepath, which name the path once more.
func bare(err error) error {
	var no unix.Errno
	if errors.As(err, &no) {
		return no
	}
	return err
}

// unmake removes the directory again that Open made, if nothing is in it.
func (f *Fence) unmake() {
	if f.created {
		_ = os.Remove(f.selected)
	}
}

// Close releases the directory.
func (f *Fence) Close() error { return f.dir.Close() }

// Resource is the directory's real path.
func (f *Fence) Resource() string { return f.resource }

// Selected is the directory as it was named, absolute and clean.
func (f *Fence) Selected() string { return f.selected }

// generation makes a new one.
func (f *Fence) generation() string {
	id := uuid.MustParse(f.opts.NewID())
	return hex.EncodeToString(id[:])
}

func (f *Fence) write() write {
	return write{Generation: f.generation(), At: FormatTime(f.opts.Now())}
}

// recorded is the owner claim as it was read.
type recorded struct {
	Claim *Claim         // nil when there is none
	stamp *regfile.Stamp // of the file
}

// read reads the owner claim. Errors: *regfile.Error, or a *Refusal of code claim-unreadable or schema-newer.
func (f *Fence) read() (recorded, error) {
	snap, err := f.dir.ReadOwned(ClaimName, regfile.DefaultLimit)
	if regfile.IsAbsent(err) {
		return recorded{}, nil
	}
	if err != nil {
		return recorded{}, err
	}
	c, err := Decode(snap.Bytes)
	if err != nil {
		r := &Refusal{Code: CodeClaimUnreadable, Path: f.dir.Join(ClaimName), Resource: f.resource, Fingerprint: snap.Fingerprint(), Err: err}
		if errors.Is(err, ErrSchemaNewer) {
			r.Code = CodeSchemaNewer
		}
		return recorded{}, r
	}
	return recorded{Claim: c, stamp: &snap.Stamp}, nil
}

// located gives a refusal of a pure decision its place.
func (f *Fence) located(r *Refusal) *Refusal {
	r.Resource = f.resource
	if r.Path == "" {
		r.Path = f.resource
	}
	return r
}
