package registry

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

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

	keeps bool // the retained lock stays: what the operation was about cannot be put in order
}

// Done reports whether nothing is left to do.
func (p *Plan) Done() bool {
	return !slices.ContainsFunc(p.Steps, func(s RepairStep) bool { return s.Action != Leaves })
}

// PlanRepair says what a repair would do. It changes nothing. Errors: a *Refusal of code unavailable while somebody has the
// registry lock open, uncertain when the registry itself cannot be read.
func (h *Home) PlanRepair(ctx context.Context) (*Plan, error) {
	return h.repairing(ctx, func(l *locked, p *Plan) error {
		p.keeps = true
		return nil
	})
}

// Repair does exactly the plan of the digest: nothing is deleted, and the retained lock goes last. A *Refusal of code conflict
// says that the plan would be another one by now.
func (h *Home) Repair(ctx context.Context, expected string) (*Plan, error) {
	return h.repairing(ctx, func(l *locked, p *Plan) error {
		if p.Digest != expected {
			return conflict(h.path, "would be repaired by another plan by now: look at it again")
		}
		return l.apply(p)
	})
}

// repairing plans, and goes on with do, inside the retained lock, or inside a new one where there is none.
func (h *Home) repairing(ctx context.Context, do func(*locked, *Plan) error) (plan *Plan, err error) {
	if err := h.make(); err != nil {
		return nil, err
	}
	held, in, err := claim.Seize(h.registry, lockFile)
	var refused *claim.ClearError
	switch {
	case errors.As(err, &refused) && refused.Code == "absent":
		err = h.lock(ctx, "repair", "", func(l *locked) (err error) {
			plan, err = l.planned(nil, do)
			return err
		})
		return plan, err
	case errors.As(err, &refused):
		return nil, &Refusal{Code: CodeUnavailable, Path: h.registry.Join(lockFile), Lock: &in, Err: err, How: "is somebody's who is at work"}
	case err != nil:
		return nil, err
	}
	l := h.entered(held)
	if err = l.sweep(); err == nil {
		plan, err = l.planned(&in, do)
	}
	if err == nil && !held.Holds() {
		err = h.lost("")
	}
	if err != nil || plan.keeps {
		held.Keep()
		return plan, err
	}
	return plan, held.Leave()
}

func (l *locked) planned(retained *claim.Inspection, do func(*locked, *Plan) error) (*Plan, error) {
	p, err := l.plan(retained)
	if err != nil {
		return nil, err
	}
	return p, do(l, p)
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
		return nil, l.lost(s.Root)
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
