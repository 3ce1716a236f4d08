package registry

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"

	"holdfast/pkg/atomicfile"
	"holdfast/pkg/claim"
	"holdfast/pkg/regfile"
)

// Action is what a repair does with a file.
type Action string

// The actions.
const (
	Moves    Action = "move"    // into broken/
	Rewrites Action = "rewrite" // without a row; a copy of what was goes into broken/
	Leaves   Action = "leave"   // not touched: no order leaves such a thing
	Unlocks  Action = "unlock"  // the retained lock goes, last
)

// RepairStep is one line of a plan.
type RepairStep struct {
	Action Action
	Path   string
	Why    string // what is wrong with it, a clause
	Root   string // whose it is, where that is known
	To     string // where it was moved, once that is done

	dir  string // of the state home
	name string
	was  *Snapshot
	row  *Reservation // that is taken out of the rows
}

// Plan is what a repair would do, in order. Its digest stands for it and for the state it was made on.
type Plan struct {
	Steps    []RepairStep
	Retained *claim.Inspection // the lock that stops everything; nil when there is none
	Digest   string
}

// Done reports whether nothing is left to do.
func (p *Plan) Done() bool {
	return !slices.ContainsFunc(p.Steps, func(s RepairStep) bool { return s.Action != Leaves })
}

// PlanRepair says what a repair would do. It changes nothing. Errors: a *Refusal of code unavailable while somebody has the
// registry lock open, uncertain when the registry itself cannot be read.
func (h *Home) PlanRepair(ctx context.Context) (*Plan, error) {
	var plan *Plan
	err := h.repairing(ctx, func(l *locked, retained *claim.Inspection) (err error) {
		plan, err = l.plan(retained)
		return err
	}, true)
	return plan, err
}

// Repair does exactly the plan of the digest: nothing is deleted, and the retained lock goes last. A *Refusal of code conflict
// says that the plan would be another one by now.
func (h *Home) Repair(ctx context.Context, expected string) (*Plan, error) {
	var plan *Plan
	err := h.repairing(ctx, func(l *locked, retained *claim.Inspection) (err error) {
		if plan, err = l.plan(retained); err != nil {
			return err
		}
		if plan.Digest != expected {
			return conflict(h.path, "would be repaired by another plan by now: look at it again")
		}
		return l.apply(plan)
	}, false)
	return plan, err
}

// repairing runs do inside the retained lock, or inside a new one where there is none. planning keeps a retained lock.
func (h *Home) repairing(ctx context.Context, do func(*locked, *claim.Inspection) error, planning bool) error {
	if err := h.make(); err != nil {
		return err
	}
	held, in, err := claim.Seize(h.registry, lockFile)
	var refused *claim.ClearError
	switch {
	case errors.As(err, &refused) && refused.Code == "absent":
		return h.lock(ctx, "repair", "", func(l *locked) error { return do(l, nil) })
	case errors.As(err, &refused):
		return &Refusal{Code: CodeUnavailable, Path: h.registry.Join(lockFile), Lock: &in, Err: err, How: "is somebody's who is at work"}
	case err != nil:
		return err
	}
	l := h.entered(held)
	if err = l.sweep(); err == nil {
		err = do(l, &in)
	}
	if err != nil || planning {
		held.Keep()
		return err
	}
	return held.Leave()
}

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
		p.Steps = append(p.Steps, r.plan(reg, l.registry.Join(rootsName))...)
	}
	for i := range reg.Rows {
		if row := &reg.Rows[i]; !slices.ContainsFunc(roots, func(r *looseRoot) bool { return r.id == RootID(row.Root) }) {
			p.Steps = append(p.Steps, rowStep(l.registry.Join(rootsName), row, reg.roots, "an acquire was cut off after it"))
		}
	}
	if retained != nil {
		p.Steps = append(p.Steps, RepairStep{Action: Unlocks, Path: retained.Path, Why: "an operation stopped in the middle and left it" + evidenceText(retained)})
	}
	p.Digest = p.digest(reg)
	return p, nil
}

func evidenceText(in *claim.Inspection) string {
	if e := in.Evidence; e != nil {
		return fmt.Sprintf(": %s of %s, by pid %d on %s", e.Op, regfile.Printable(e.Root), e.PID, regfile.Printable(e.Hostname))
	}
	return ""
}

// rawRegistry is the registry with its files even when it cannot be made sense of.
func (l *locked) rawRegistry() (*Registry, error) {
	r := &Registry{}
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
	id    string
	dir   *regfile.Dir
	state *rootState
	fault error // a file that cannot be read, or makes no sense
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
		sub, err := dir.OpenDir(id)
		r := &looseRoot{id: id, state: &rootState{id: id, files: map[string]*Snapshot{}}, fault: err}
		if err == nil {
			r.dir, r.state.dir = sub, sub
			r.fault = r.read()
		}
		roots = append(roots, r)
	}
	return roots, nil
}

func (r *looseRoot) read() error {
	if _, err := closedSet(r.dir, rootNames); err != nil {
		return err
	}
	for _, name := range readNames {
		snap, err := readFile(r.dir, name, maxFile)
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
// without a row and without locks; what differs is the order, which is that of the operation.
func (r *looseRoot) plan(reg *Registry, rootsPath string) []RepairStep {
	var row *Reservation
	for i := range reg.Rows {
		if RootID(reg.Rows[i].Root) == r.id {
			row = &reg.Rows[i]
		}
	}
	s := r.state
	switch {
	case r.fault != nil:
		return []RepairStep{{Action: Leaves, Path: r.path(), Why: r.fault.Error()}}
	case s.registration != nil && s.registration.Phase != Stopped:
		return r.running(row)
	}
	locks := r.locks(row)
	if row == nil {
		return append(locks, r.orphanConfig()...)
	}
	released := s.registration != nil && s.registration.Epoch == row.Epoch
	if released {
		return append([]RepairStep{rowStep(rootsPath, row, reg.roots, "its service was stopped, and the release was cut off")}, locks...)
	}
	return append(append(locks, r.orphanConfig()...), rowStep(rootsPath, row, reg.roots, "an acquire was cut off before its registration"))
}

// running is a root with a service: complete, or in a way that no order leaves.
func (r *looseRoot) running(row *Reservation) []RepairStep {
	reg := r.state.registration
	complete := row != nil && *row == reg.Reservation && r.state.owner != nil && r.state.checkout != nil && r.state.capEpoch == reg.Epoch &&
		*r.state.owner == ownerLock{schemaOwnerLock, reg.Epoch, reg.OwnerToken, reg.PID, reg.StartKey, reg.Host} && r.state.checkout.Token == reg.CheckoutToken
	if complete {
		return nil
	}
	return []RepairStep{{Action: Leaves, Path: r.path(), Root: reg.Root, Why: "it has a service whose row and locks are not all there, as no operation leaves them"}}
}

func (r *looseRoot) path() string {
	if r.dir == nil {
		return r.id
	}
	return r.dir.Path()
}

// locks are the steps for what a cut off operation left of a service's locks, in the order of a release.
func (r *looseRoot) locks(row *Reservation) []RepairStep {
	s, owner := r.state, Reservation{}
	root := ""
	switch {
	case row != nil:
		owner = *row
	case s.registration != nil:
		owner = s.registration.Reservation
	}
	root = owner.Root
	var steps []RepairStep
	add := func(name string, there, theirs bool) {
		if !there {
			return
		}
		step := RepairStep{Action: Moves, Path: s.dir.Join(name), Root: root, Why: "an operation of epoch " + owner.Epoch + " was cut off and left it", dir: filepath.Join(rootsDir, r.id), name: name, was: s.files[name]}
		if !theirs {
			step.Action, step.Why = Leaves, "it belongs to no operation that is known here"
		}
		steps = append(steps, step)
	}
	add(capabilityName, s.capEpoch != "", s.capEpoch == owner.Epoch)
	add(ownerLockFile, s.owner != nil, s.owner != nil && s.owner.Epoch == owner.Epoch)
	if c := s.checkout; c != nil {
		theirs := c.PID == owner.PID && c.StartKey == owner.StartKey && c.Host == owner.Host
		add(checkoutName, true, theirs)
		if !theirs {
			steps[len(steps)-1].Why = "it is an older writer's, and is never moved"
		}
	}
	return steps
}

// orphanConfig is a configuration without its format, which an acquire or an init was about to write.
func (r *looseRoot) orphanConfig() []RepairStep {
	s := r.state
	switch {
	case s.config != nil && s.format == nil && s.registration == nil:
		return []RepairStep{{Action: Moves, Path: s.dir.Join(configName), Why: "an operation was cut off between it and " + formatFile,
			dir: filepath.Join(rootsDir, r.id), name: configName, was: s.files[configName]}}
	case (s.config == nil) != (s.format == nil):
		return []RepairStep{{Action: Leaves, Path: s.dir.Path(), Why: "it has only one of " + configName + " and " + formatFile + ", as no operation leaves them"}}
	}
	return nil
}

func rowStep(path string, row *Reservation, was *Snapshot, why string) RepairStep {
	return RepairStep{Action: Rewrites, Path: path, Root: row.Root, Why: why, dir: registryDir, name: rootsName, was: was, row: row}
}

// digest stands for the plan and for every file that it was made on.
func (p *Plan) digest(reg *Registry) string {
	var b strings.Builder
	for _, s := range []*Snapshot{reg.format, reg.roots} {
		if s != nil {
			fmt.Fprintf(&b, "%s %+v\n", s.Identity, s.Stamp)
		}
	}
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "%s %s %s\n", s.Action, s.Path, s.Why)
		if s.was != nil {
			fmt.Fprintf(&b, "%s %+v\n", s.was.Identity, s.was.Stamp)
		}
	}
	if p.Retained != nil {
		fmt.Fprintln(&b, p.Retained.Fingerprint, p.Retained.Token)
	}
	return "sha256:" + identityOf([]byte(b.String()))
}

// apply carries the plan out. The retained lock, its last step, is the caller's to leave.
func (l *locked) apply(p *Plan) error {
	if err := makeDirectory(filepath.Join(l.path, brokenDir)); err != nil {
		return err
	}
	broken, err := l.sub(brokenDir)
	if err != nil {
		return err
	}
	defer broken.Close()
	var rewritten *Snapshot // roots.json after an earlier step of this plan
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Action == Rewrites && rewritten != nil {
			s.was = rewritten
		}
		now, err := l.repairStep(broken, s)
		if err != nil {
			return err
		}
		if s.Action == Rewrites {
			rewritten = now
		}
		l.iv.at("repaired")
	}
	if _, err := l.Registry(); err != nil {
		return err
	}
	return nil
}

func (l *locked) repairStep(broken *regfile.Dir, s *RepairStep) (*Snapshot, error) {
	if s.Action != Moves && s.Action != Rewrites {
		return nil, nil
	}
	if !l.held.Holds() {
		return nil, &Refusal{Code: CodeClaimLost, Path: l.registry.Join(lockFile), How: "was taken away while this call was inside it"}
	}
	d, err := regfile.OpenDir(filepath.Join(l.path, s.dir))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	aside := filepath.Base(s.dir) + "-" + s.name + "-" + uuid.NewString()[:8]
	s.To = broken.Join(aside)
	if s.Action == Rewrites {
		return l.rewrite(broken, aside, d, s)
	}
	if _, err := l.unchanged(d, s.name, s.was); err != nil {
		return nil, err
	}
	l.wrote = true
	if err := atomicfile.MoveTo(d, s.name, broken, aside); err != nil {
		return nil, err
	}
	return nil, errors.Join(d.Sync(), broken.Sync())
}

// rewrite keeps a copy of the rows, and publishes them without one.
func (l *locked) rewrite(broken *regfile.Dir, aside string, d *regfile.Dir, s *RepairStep) (*Snapshot, error) {
	was, err := readFile(d, s.name, maxRootsFile)
	if err != nil {
		return nil, err
	}
	var roots rootsFile
	if !was.same(s.was) || decode(was.Bytes, &roots) != nil {
		return nil, conflict(s.Path, "is not the file any more that the plan was made on")
	}
	if _, err := l.create(broken, aside, was.Bytes); err != nil {
		return nil, err
	}
	roots.Entries = slices.DeleteFunc(roots.Entries, func(r Reservation) bool { return r == *s.row })
	return l.replace(d, s.name, s.was, encode(roots))
}
