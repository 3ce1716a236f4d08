package registry

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"holdfast/pkg/claim"
	"holdfast/pkg/regfile"
)

// Registry is the registry as it was read.
type Registry struct {
	Rows   []Reservation
	Fenced bool // a retained lock keeps everything from changing

	format *Snapshot // nil in an empty registry
	roots  *Snapshot
}

// Registry reads the registry. Errors: a *Refusal of code uncertain, *regfile.Error; beside one only Fenced says something.
func (h *Home) Registry() (*Registry, error) {
	r := &Registry{}
	if h.registry == nil {
		return r, nil
	}
	err := h.readRegistry(r)
	fenced, lockErr := h.fenced()
	if err == nil {
		err = lockErr
	}
	r.Fenced = fenced
	return r, err
}

// readRegistry reads and checks the two files.
func (h *Home) readRegistry(r *Registry) (err error) {
	if _, err := closedSet(h.registry, registryNames); err != nil {
		return err
	}
	if r.format, err = readFile(h.registry, formatFile, maxFile); err != nil {
		return fileUncertain(h.registry.Join(formatFile), err)
	}
	if r.roots, err = readFile(h.registry, rootsName, maxRootsFile); err != nil {
		return fileUncertain(h.registry.Join(rootsName), err)
	}
	return h.parseRegistry(r)
}

// parseRegistry makes sense of the two files.
func (h *Home) parseRegistry(r *Registry) error {
	switch {
	case r.format == nil && r.roots == nil:
		return nil
	case r.format == nil:
		return uncertain(h.registry.Join(formatFile), "is missing beside %s", rootsName)
	case r.roots == nil:
		return uncertain(h.registry.Join(rootsName), "is missing beside %s", formatFile)
	}
	var format registryFormat
	if err := decode(r.format.Bytes, &format); err != nil {
		return uncertainBy(h.registry.Join(formatFile), err)
	}
	if format.StateHome != h.path {
		return uncertain(h.registry.Join(formatFile), "is of another state home, %s", regfile.Printable(format.StateHome))
	}
	var roots rootsFile
	if err := decode(r.roots.Bytes, &roots); err != nil {
		return uncertainBy(h.registry.Join(rootsName), err)
	}
	r.Rows = roots.Entries
	return h.consistent(r.Rows)
}

// consistent refuses rows of another state home, and rows that overlap or share an endpoint.
func (h *Home) consistent(rows []Reservation) error {
	path := h.registry.Join(rootsName)
	endpoints := make(map[string]string, len(rows))
	for _, row := range rows {
		if row.StateHome != h.path {
			return uncertain(path, "has a row of another state home, %s", regfile.Printable(row.StateHome))
		}
		if other, taken := endpoints[row.Endpoint]; taken {
			return uncertain(path, "has two rows with endpoint %s, %s and %s", row.Endpoint, regfile.Printable(other), regfile.Printable(row.Root))
		}
		endpoints[row.Endpoint] = row.Root
	}
	if a, b, found := overlapping(rows); found {
		return uncertain(path, "has two rows that overlap, %s and %s", regfile.Printable(a), regfile.Printable(b))
	}
	return nil
}

// fenced reports whether a retained lock is there: one that nobody has open. Its evidence is written only once its kernel lock is
// taken; one without evidence may be about to be locked, so it is given the time of every unlocked one.
func (h *Home) fenced() (bool, error) {
	if h.inLock {
		return false, nil
	}
	before := h.lockStamp()
	for started := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		in, err := claim.Inspect(h.registry, lockFile)
		switch {
		case err != nil || !unheld(in):
			return false, err
		case in.Evidence != nil && in.Evidence.KernelLock:
			return true, nil
		case h.lockStamp() != before:
			return false, nil // another one by now, or written to
		case time.Since(started) >= h.iv.retainedTime:
			return true, nil
		}
	}
}

// fileUncertain is a file of ours that cannot be trusted for what it is; the system's own failures stay what they are.
func fileUncertain(path string, err error) error {
	var e *regfile.Error
	if errors.As(err, &e) && e.Code == regfile.CodeTooLarge {
		return &Refusal{Code: CodeUncertain, Path: path, How: fmt.Sprintf("is larger than %d bytes", e.Limit), Err: err}
	}
	return err
}

// row is the row of a root; nil when there is none.
func (r *Registry) row(root string) *Reservation {
	i := slices.IndexFunc(r.Rows, func(x Reservation) bool { return x.Root == root })
	if i < 0 {
		return nil
	}
	return &r.Rows[i]
}

// rootOf is the root that a path means: that of a row which has exactly this path, whatever is there now, else the physical one.
func (r *Registry) rootOf(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err == nil && r.row(abs) != nil {
		return abs, nil
	}
	return Physical(path)
}

// rootState is what is there of one root.
type rootState struct {
	id    string
	dir   *regfile.Dir // nil when it does not exist
	files map[string]*Snapshot

	format       *serviceFormat
	config       *configFile
	registration *Registration
	owner        *ownerLock
	checkout     *checkoutLock
	capEpoch     string // the epoch that the capability is of; empty when there is none
}

func (s *rootState) close() { closeDir(s.dir) }

// roots opens the directory of the roots' files; nil where there is none.
func (h *Home) roots() (*regfile.Dir, error) {
	if h.dir == nil {
		return nil, nil
	}
	return h.sub(rootsDir)
}

// readRoot reads the state of a root and refuses what does not agree. Errors: a *Refusal of code uncertain, *regfile.Error.
func (h *Home) readRoot(root string) (*rootState, error) {
	roots, err := h.roots()
	if err != nil {
		return nil, err
	}
	defer closeDir(roots)
	return h.readRootIn(roots, root)
}

// readRootIn is readRoot in the directory of the roots, which is nil when it does not exist.
func (h *Home) readRootIn(roots *regfile.Dir, root string) (*rootState, error) {
	s := &rootState{id: RootID(root), files: make(map[string]*Snapshot, len(readNames))}
	if roots == nil {
		return s, nil
	}
	var err error
	s.dir, err = roots.OpenDir(s.id)
	if regfile.IsAbsent(err) {
		s.dir = nil
		return s, nil
	}
	if err != nil {
		return nil, uncertainBy(roots.Join(s.id), err)
	}
	if err := s.read(h, root); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// readNames are the files of a root that take part.
var readNames = []string{formatFile, configName, registrationFile, ownerLockFile, capabilityName, checkoutName, hostConfigFile}

func (s *rootState) read(h *Home, root string) error {
	if err := ownDirectory(s.dir.Path()); err != nil {
		return err
	}
	present, err := closedSet(s.dir, rootNames)
	if err != nil {
		return err
	}
	for _, name := range readNames {
		if !slices.Contains(present, name) {
			continue
		}
		snap, err := readFile(s.dir, name, maxFile)
		if err != nil {
			return fileUncertain(s.dir.Join(name), err)
		}
		if snap != nil {
			s.files[name] = snap
		}
	}
	if err := s.parse(); err != nil {
		return err
	}
	return s.agrees(h, root)
}

// parse makes sense of each file by itself.
func (s *rootState) parse() error {
	var capability *capabilityFile
	for _, err := range []error{
		parse(s, formatFile, &s.format), parse(s, configName, &s.config), parse(s, registrationFile, &s.registration),
		parse(s, ownerLockFile, &s.owner), parse(s, checkoutName, &s.checkout), parse(s, capabilityName, &capability),
	} {
		if err != nil {
			return err
		}
	}
	if capability != nil {
		s.capEpoch = capability.Epoch
		s.files[capabilityName].Bytes = nil // nothing of it stays
	}
	return nil
}

func parse[T interface{ check() error }](s *rootState, name string, into **T) error {
	snap := s.files[name]
	if snap == nil {
		return nil
	}
	var v T
	if err := decode(snap.Bytes, &v); err != nil {
		if name == capabilityName {
			return uncertain(s.dir.Join(name), "is no capability file") // what is wrong with it could quote it
		}
		return uncertainBy(s.dir.Join(name), err)
	}
	*into = &v
	return nil
}

// agrees refuses files that do not belong together.
func (s *rootState) agrees(h *Home, root string) error {
	at := s.dir.Join
	switch {
	case (s.format == nil) != (s.config == nil):
		return uncertain(s.dir.Path(), "has only one of %s and %s", formatFile, configName)
	case s.format == nil && (s.registration != nil || s.owner != nil || s.capEpoch != ""):
		return uncertain(s.dir.Path(), "has a service without %s", formatFile)
	case s.format == nil:
		return nil
	case s.format.Root != root || s.format.StateHome != h.path:
		return uncertain(at(formatFile), "is of another root or state home")
	case s.format.ConfigIdentity != s.files[configName].Identity:
		return uncertain(at(formatFile), "does not name the %s that is there", configName)
	case s.files[hostConfigFile] != nil && s.files[hostConfigFile].Identity != s.config.PolicyIdentity:
		return uncertain(at(configName), "does not name the %s that is there", hostConfigFile)
	case s.registration == nil && (s.owner != nil || s.capEpoch != ""):
		return uncertain(s.dir.Path(), "has locks of a service without %s", registrationFile)
	case s.registration == nil:
		return nil
	}
	return s.registrationAgrees(h, root)
}

func (s *rootState) registrationAgrees(h *Home, root string) error {
	r, at := s.registration, s.dir.Join
	bound, _ := ParseEndpoint(r.Endpoint)
	requested, _ := ParseEndpoint(s.config.Endpoint)
	switch {
	case r.Root != root || r.StateHome != h.path:
		return uncertain(at(registrationFile), "is of another root or state home")
	case r.ConfigIdentity != s.format.ConfigIdentity:
		return uncertain(at(registrationFile), "does not name the %s that is there", configName)
	case !bound.Matches(requested):
		return uncertain(at(registrationFile), "has endpoint %s, and %s was asked for", r.Endpoint, s.config.Endpoint)
	case r.Phase == Stopped && (s.owner != nil || s.checkout != nil || s.capEpoch != ""):
		return uncertain(at(registrationFile), "is stopped, and locks of a service are still there")
	case r.Phase == Stopped:
		return nil
	case s.owner == nil || s.checkout == nil || s.capEpoch == "":
		return uncertain(at(registrationFile), "is %s, and not all of %s, %s and %s are there", r.Phase, ownerLockFile, checkoutName, capabilityName)
	case *s.owner != ownerLock{schemaOwnerLock, r.Epoch, r.OwnerToken, r.PID, r.StartKey, r.Host}:
		return uncertain(at(ownerLockFile), "is not the registration's")
	case s.checkout.Token != r.CheckoutToken || s.checkout.PID != r.PID || s.checkout.StartKey != r.StartKey || s.checkout.Host != r.Host:
		return uncertain(at(checkoutName), "is not the registration's")
	case s.capEpoch != r.Epoch:
		return uncertain(at(capabilityName), "is of another epoch")
	}
	return nil
}
