package registry

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"holdfast/pkg/claim"
	"holdfast/pkg/regfile"
)

// plan works out what to do, from the files alone.
func (l *locked) plan(retained *claim.Inspection) (*Plan, error) {
	reg, regErr := l.rawRegistry()
	p := &Plan{Retained: retained}
	roots, err := l.looseRoots()
	if err != nil {
		return nil, err
	}
	defer closeAll(roots)
	if regErr != nil {
		step, ok := headless(l, reg, roots)
		if !ok {
			return nil, regErr
		}
		p.Steps = append(p.Steps, step)
	}
	for _, r := range roots {
		p.Steps = append(p.Steps, r.plan(l.Home, reg)...)
	}
	for i := range reg.Rows {
		if row := &reg.Rows[i]; !slices.ContainsFunc(roots, func(r *looseRoot) bool { return r.id == RootID(row.Root) }) {
			p.Steps = append(p.Steps, rowStep(l.registry.Join(rootsName), row, reg.roots, "an acquire was cut off after it"))
		}
	}
	if retained != nil {
		p.unlock(roots)
	}
	p.Digest = p.digest(reg, roots)
	return p, nil
}

// unlock is the step for the retained lock. It stays as long as what the operation was about cannot be put in order; whether
// any other root is uncertain makes no difference to it.
func (p *Plan) unlock(roots []*looseRoot) {
	step := RepairStep{Action: Unlocks, Path: p.Retained.Path, Why: "an operation stopped in the middle and left it" + evidenceText(p.Retained)}
	about := ""
	if e := p.Retained.Evidence; e != nil && e.Root != "" {
		about = RootID(e.Root)
	}
	i := slices.IndexFunc(roots, func(r *looseRoot) bool { return r.unsettled && (about == "" || about == r.id) })
	if i >= 0 {
		p.keeps = true
		step.Action, step.Why = Leaves, "it stays as a fence while "+regfile.Printable(roots[i].path)+" is uncertain: "+step.Why
	}
	p.Steps = append(p.Steps, step)
}

func evidenceText(in *claim.Inspection) string {
	e := in.Evidence
	if e == nil {
		return ""
	}
	of := ""
	if e.Root != "" {
		of = " of " + regfile.Printable(e.Root)
	}
	return fmt.Sprintf(": %s%s, by pid %d on %s", regfile.Printable(e.Op), of, e.PID, regfile.Printable(e.Hostname))
}

// rawRegistry is the registry with its files even when it cannot be made sense of.
func (l *locked) rawRegistry() (*Registry, error) {
	r := &Registry{}
	if _, err := closedSet(l.registry, registryNames); err != nil {
		return r, err
	}
	var err error
	if r.format, err = readFile(l.registry, formatFile, maxFile); err != nil {
		return r, err
	}
	if r.roots, err = readFile(l.registry, rootsName, maxRootsFile); err != nil {
		return r, err
	}
	return r, l.parseRegistry(r)
}

// headless is the registry whose very first acquire was cut off after its format: no row was ever there.
func headless(l *locked, reg *Registry, roots []*looseRoot) (RepairStep, bool) {
	running := slices.ContainsFunc(roots, func(r *looseRoot) bool {
		return r.fault != nil || r.state.registration != nil && r.state.registration.Phase != Stopped
	})
	if reg.format == nil || reg.roots != nil || running {
		return RepairStep{}, false
	}
	return RepairStep{
		Action: Moves, Path: l.registry.Join(formatFile), Why: "the first acquire was cut off before it had a row",
		dir: registryDir, name: formatFile, was: reg.format,
	}, true
}

// looseRoot is a root's directory with whatever is in it.
type looseRoot struct {
	id        string
	path      string
	state     *rootState
	fault     error // a file that cannot be read, or makes no sense
	touched   bool  // the plan says something of it
	unsettled bool  // it stays uncertain
}

func closeAll(roots []*looseRoot) {
	for _, r := range roots {
		r.state.close()
	}
}

// looseRoots reads every root's directory.
func (l *locked) looseRoots() ([]*looseRoot, error) {
	dir, err := l.sub(rootsDir)
	if err != nil || dir == nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Names()
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var roots []*looseRoot
	for _, id := range names {
		r := &looseRoot{id: id, path: dir.Join(id), state: &rootState{id: id, files: map[string]*Snapshot{}}}
		if r.state.dir, r.fault = dir.OpenDir(id); r.fault != nil {
			r.state.dir = nil
		} else {
			r.fault = r.read()
		}
		roots = append(roots, r)
	}
	return roots, nil
}

func (r *looseRoot) read() error {
	if err := ownDirectory(r.path); err != nil {
		return err
	}
	if _, err := closedSet(r.state.dir, rootNames); err != nil {
		return err
	}
	for _, name := range readNames {
		snap, err := readFile(r.state.dir, name, maxFile)
		if err != nil {
			return err
		}
		if snap != nil {
			r.state.files[name] = snap
		}
	}
	return r.state.parse()
}

// plan puts a root in order: an operation before its commit point is rolled back, one after it is rolled forward. Both ways end
// without a row and without locks; what differs is the order, which is that of the operation. What is uncertain after that is
// left as it is, and said.
func (r *looseRoot) plan(h *Home, reg *Registry) []RepairStep {
	var row *Reservation
	for i := range reg.Rows {
		if RootID(reg.Rows[i].Root) == r.id {
			row = &reg.Rows[i]
		}
	}
	var steps []RepairStep
	err := r.fault
	if err == nil {
		steps = r.steps(h, row, reg.roots)
		err = r.after(h, steps, row)
	}
	if err != nil && !r.unsettled {
		r.unsettled = true
		steps = append(steps, RepairStep{Action: Leaves, Path: r.path, Root: r.root(row), Why: err.Error()})
	}
	r.touched = len(steps) > 0
	return steps
}

func (r *looseRoot) steps(h *Home, row *Reservation, rows *Snapshot) []RepairStep {
	s := r.state
	if s.registration != nil && s.registration.Phase != Stopped {
		return nil
	}
	locks, rowsPath := r.locks(row), h.registry.Join(rootsName)
	switch {
	case row == nil:
		return append(locks, r.orphanConfig()...)
	case s.registration != nil && s.registration.Epoch == row.Epoch:
		return append([]RepairStep{rowStep(rowsPath, row, rows, "its service was stopped, and the release was cut off")}, locks...)
	}
	return append(append(locks, r.orphanConfig()...), rowStep(rowsPath, row, rows, "an acquire was cut off before its registration"))
}

// root is whose directory it is; empty where nothing tells.
func (r *looseRoot) root(row *Reservation) string {
	switch s := r.state; {
	case row != nil:
		return row.Root
	case s.registration != nil:
		return s.registration.Root
	case s.format != nil:
		return s.format.Root
	}
	return ""
}

// after says why the root is still uncertain once the steps are done; nil when it is not. An older writer's lock does not
// count: it goes with that writer.
func (r *looseRoot) after(h *Home, steps []RepairStep, row *Reservation) error {
	s := *r.state
	s.files = maps.Clone(s.files)
	root := r.root(row)
	for _, step := range steps {
		switch {
		case step.Action == Rewrites:
			row = nil
		case step.name == configName:
			s.config = nil
		case step.name == capabilityName:
			s.capEpoch = ""
		case step.name == ownerLockFile:
			s.owner = nil
		case step.name == checkoutName:
			s.checkout = nil
		}
	}
	if root != "" && RootID(root) != r.id {
		return uncertain(r.path, "has files of another root, %s", regfile.Printable(root))
	}
	if err := s.agrees(h, root); err != nil {
		return err
	}
	return h.rowAgrees(root, row, s.registration)
}

// locks are the steps for what a cut off operation left of a service's locks, in the order of a release.
func (r *looseRoot) locks(row *Reservation) []RepairStep {
	s, owner := r.state, Reservation{}
	switch {
	case row != nil:
		owner = *row
	case s.registration != nil:
		owner = s.registration.Reservation
	}
	var steps []RepairStep
	add := func(name string, there, theirs bool, other string) {
		step := RepairStep{
			Action: Moves, Path: s.dir.Join(name), Root: owner.Root, Why: "an operation of epoch " + owner.Epoch + " was cut off and left it",
			dir: filepath.Join(rootsDir, r.id), name: name, was: s.files[name],
		}
		if !theirs {
			step.Action, step.Why = Leaves, other
		}
		if there {
			steps = append(steps, step)
			r.unsettled = r.unsettled || !theirs && name != checkoutName
		}
	}
	const unknown = "it belongs to no operation that is known here"
	add(capabilityName, s.capEpoch != "", s.capEpoch == owner.Epoch, unknown)
	add(ownerLockFile, s.owner != nil, s.owner != nil && s.owner.Epoch == owner.Epoch, unknown)
	add(checkoutName, s.checkout != nil, s.checkout != nil && r.tookCheckout(owner), "it is an older writer's, and is never moved")
	return steps
}

// tookCheckout reports whether the checkout lock is the service's. A registration of the same epoch knows its token; the row,
// which is all that an acquire leaves before that, knows its process.
func (r *looseRoot) tookCheckout(owner Reservation) bool {
	c, reg := r.state.checkout, r.state.registration
	if reg != nil && reg.Epoch == owner.Epoch && reg.CheckoutToken != c.Token {
		return false
	}
	return c.PID == owner.PID && c.StartKey == owner.StartKey && c.Host == owner.Host
}

// orphanConfig is a configuration without its format, which an acquire or an init was about to write.
func (r *looseRoot) orphanConfig() []RepairStep {
	s := r.state
	if s.config == nil || s.format != nil || s.registration != nil {
		return nil
	}
	return []RepairStep{{
		Action: Moves, Path: s.dir.Join(configName), Why: "an operation was cut off between it and " + formatFile,
		dir: filepath.Join(rootsDir, r.id), name: configName, was: s.files[configName],
	}}
}

func rowStep(path string, row *Reservation, was *Snapshot, why string) RepairStep {
	return RepairStep{Action: Rewrites, Path: path, Root: row.Root, Why: why, dir: registryDir, name: rootsName, was: was, row: row}
}

// digest stands for the plan, and for every file that it was made on: the registry's, and all those of the roots of which it says
// something.
func (p *Plan) digest(reg *Registry, roots []*looseRoot) string {
	var b strings.Builder
	file := func(name string, s *Snapshot) {
		if s != nil {
			fmt.Fprintf(&b, "%s %s %+v\n", name, s.Identity, s.Stamp)
		}
	}
	file(formatFile, reg.format)
	file(rootsName, reg.roots)
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "%s %s %s\n", s.Action, s.Path, s.Why)
	}
	for _, r := range roots {
		for _, name := range readNames {
			if r.touched {
				file(filepath.Join(r.id, name), r.state.files[name])
			}
		}
	}
	if p.Retained != nil {
		fmt.Fprintln(&b, p.Retained.Fingerprint, p.Retained.Token)
	}
	return "sha256:" + identityOf([]byte(b.String()))
}
