package registry

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"holdfast/pkg/claim"
	"holdfast/pkg/procid"
	"holdfast/pkg/regfile"
)

// The directories of a state home.
const (
	registryDir = "registry"
	rootsDir    = "roots"
	stageDir    = "stage"
	receiptsDir = "receipts"
	brokenDir   = "broken"
)

// Options are what a Home takes from outside. The zero value is right for a program.
type Options struct {
	// Waiting, when it is set, is told again and again while the registry lock is waited for, with a look at it.
	Waiting func(inspect func() (claim.Inspection, error), waited time.Duration)

	Tool  string                                               // named in the registry lock; default "holdfast"
	Now   func() time.Time                                     // default time.Now
	NewID func() string                                        // UUIDs; default random ones
	Self  func() (procid.Identity, error)                      // default procid.Self
	Judge func(rec procid.Identity, local bool) procid.Verdict // default that of a procid.Observer; called by several goroutines
	Rand  func(b []byte) error                                 // fills b with random bytes; default crypto/rand
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
		o.Self = sync.OnceValues(procid.Self)
	}
	if o.Judge == nil {
		observer := sync.OnceValue(procid.NewObserver)
		o.Judge = func(rec procid.Identity, local bool) procid.Verdict { return observer().Judge(rec, local) }
	}
	if o.Rand == nil {
		o.Rand = randomBytes
	}
}

// intervals are the protocol's times, and the places where tests stop an operation.
type intervals struct {
	lockBound    time.Duration // waiting while somebody has the registry lock
	retainedTime time.Duration // how long an unlocked one may stay before it counts as retained
	at           func(step string)
}

// Home is a state home: one user's registry.
type Home struct {
	path     string       // physical
	dir      *regfile.Dir // nil when the state home does not exist
	registry *regfile.Dir // nil when it does not exist
	stage    *regfile.Dir // nil unless a mutation has opened it
	inLock   bool         // this call has the registry lock: what is there of it is no fence
	opts     Options
	iv       intervals
}

// Open opens the state home at path; one that does not exist reads as an empty registry, and is made by the first mutation.
// Errors are *regfile.Error, or a *Refusal of code uncertain when it is not the caller's own and closed to others.
func Open(path string, opts Options) (*Home, error) {
	h := &Home{opts: opts, iv: intervals{lockBound: 10 * time.Second, retainedTime: 200 * time.Millisecond, at: func(string) {}}}
	h.opts.setDefaults()
	var err error
	if h.path, err = Physical(path); err != nil {
		return nil, err
	}
	if !validPath(h.path) {
		return nil, uncertain(path, "is no path that a registry can record")
	}
	return h, h.reopen()
}

// reopen opens what is there of the state home.
func (h *Home) reopen() error {
	h.Close()
	var err error
	if h.dir, err = regfile.OpenDir(h.path); err != nil {
		h.dir = nil
		if regfile.IsAbsent(err) {
			return nil
		}
		return err
	}
	if err := ownDirectory(h.path); err != nil {
		return err
	}
	if h.registry, err = h.sub(registryDir); err != nil {
		return err
	}
	h.stage, err = h.sub(stageDir)
	return err
}

// sub opens a directory of the state home; nil when it is missing.
func (h *Home) sub(name string) (*regfile.Dir, error) {
	d, err := h.dir.OpenDir(name)
	if regfile.IsAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, uncertainBy(h.dir.Join(name), err)
	}
	if err := ownDirectory(d.Path()); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// ownDirectory refuses a directory that is not the caller's own, or is open to others.
func ownDirectory(path string) error {
	st, err := regfile.Lstat(path)
	switch {
	case err != nil:
		return err
	case st.Kind != regfile.Directory:
		return uncertain(path, "is %s, not a directory", st.Kind.Noun())
	case st.UID != uint32(os.Geteuid()):
		return &regfile.Error{Code: regfile.CodeForeignOwner, Path: path, Kind: st.Kind, UID: st.UID, Stamp: &st}
	case st.Perm() != 0o700:
		return uncertain(path, "has mode %04o, and must have 0700", st.Perm())
	}
	return nil
}

// Path is the state home's physical path.
func (h *Home) Path() string { return h.path }

// Close releases the directories.
func (h *Home) Close() error {
	for _, d := range []**regfile.Dir{&h.dir, &h.registry, &h.stage} {
		if *d != nil {
			(*d).Close()
			*d = nil
		}
	}
	return nil
}

// make makes the directories that a mutation needs.
func (h *Home) make() error {
	if h.dir == nil {
		if err := os.MkdirAll(filepath.Dir(h.path), 0o700); err != nil {
			return regfile.IOError("create directory", filepath.Dir(h.path), bare(err))
		}
	}
	for _, dir := range []string{"", registryDir, rootsDir, stageDir, receiptsDir} {
		if err := makeDirectory(filepath.Join(h.path, dir)); err != nil {
			return err
		}
	}
	return h.reopen()
}

// makeDirectory makes a directory of mode 0700, unless it is there.
func makeDirectory(path string) error {
	err := regfile.Retry(func() error { return unix.Mkdir(path, 0o700) })
	if err == nil || errors.Is(err, unix.EEXIST) {
		return nil
	}
	return regfile.IOError("create directory", path, err)
}

// Physical is the physical path of a path whose end need not exist: the longest part of it that does is resolved.
func Physical(path string) (string, error) {
	abs, err := absolute(path)
	if err != nil {
		return "", regfile.IOError("resolve", path, bare(err))
	}
	rest := ""
	for {
		real, err := filepath.EvalSymlinks(abs)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) || abs == "/" {
			return "", regfile.IOError("resolve", path, bare(err))
		}
		if st, err := os.Lstat(abs); err == nil && st.Mode()&fs.ModeSymlink != 0 {
			return "", regfile.IOError("resolve", path, unix.ENOENT) // it leads nowhere
		} else if err == nil {
			continue // made just now
		}
		var last string
		if abs, last = cut(abs); last == ".." {
			return "", regfile.IOError("resolve", path, unix.ENOENT)
		}
		rest = filepath.Join(last, rest)
	}
}

// absolute is a path from the root of the filesystem, otherwise as it was given: what ".." means is for the kernel to say, since
// it may come after a symlink.
func absolute(path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	dir, err := os.Getwd()
	return dir + "/" + path, err
}

// cut takes the last component off an absolute path.
func cut(abs string) (parent, last string) {
	abs = strings.TrimRight(abs, "/")
	i := strings.LastIndexByte(abs, '/')
	return "/" + strings.Trim(abs[:max(i, 0)], "/"), abs[i+1:]
}

// bare is the errno in an error of package os or path/filepath, which name the path once more.
func bare(err error) error {
	var no unix.Errno
	if errors.As(err, &no) {
		return no
	}
	return err
}
