package registry

import (
	"context"
	"path/filepath"
	"slices"

	"holdfast/pkg/procid"
)

// OpenReceipt opens the state home that a receipt names. Errors: *Refusal, *regfile.Error.
func OpenReceipt(path string, opts Options) (*Home, error) {
	r, err := readReceipt(path)
	if err != nil {
		return nil, err
	}
	return Open(r.StateHome, opts)
}

// asserted is a root whose every file is as the owner's receipt says.
type asserted struct {
	path    string
	receipt receipt
	reg     *Registry
	state   *rootState
}

// assert reads everything and refuses (conflict) unless it is exactly as the receipt says. A registration at the receipt's
// pending identity is the receipt's own.
func (h *Home) assert(path string) (*asserted, error) {
	r, err := readReceipt(path)
	if err != nil {
		return nil, err
	}
	reg, err := h.Registry()
	if err != nil {
		return nil, err
	}
	state, err := h.readRoot(r.Root)
	if err != nil {
		return nil, err
	}
	a := &asserted{path: path, receipt: r, reg: reg, state: state}
	if err := a.check(h); err != nil {
		state.close()
		return nil, err
	}
	return a, nil
}

func (a *asserted) check(h *Home) error {
	at := func(name string) string { return filepath.Join(h.path, rootsDir, a.state.id, name) }
	for _, name := range readNames {
		was, now := a.receipt.file(name), a.state.files[name]
		if name == registrationFile && a.receipt.Pending != "" && now != nil && now.Identity == a.receipt.Pending {
			continue
		}
		switch {
		case was == nil && now != nil:
			return conflict(at(name), "has appeared since the receipt")
		case was != nil && now == nil:
			return conflict(at(name), "is gone since the receipt")
		case !was.same(now):
			return conflict(at(name), "is not the file of the receipt any more")
		}
	}
	switch reg := a.state.registration; {
	case reg == nil || reg.Epoch != a.receipt.Epoch || reg.OwnerToken != a.receipt.OwnerToken:
		return conflict(at(registrationFile), "is not of the receipt's epoch")
	default:
		if row := a.reg.row(a.receipt.Root); row == nil || *row != reg.Reservation {
			return conflict(filepath.Join(h.path, registryDir, rootsName), "has no row that is equal to the registration")
		}
	}
	return nil
}

// live refuses unless the recorded owner is on this host and lives.
func (a *asserted) live(h *Home) error {
	v := h.opts.Judge(a.state.registration.Owner(), h.dir.IsLocal())
	if v.Word == procid.Live {
		return nil
	}
	r := conflict(a.receipt.Root, "has an owner that is %s", v.Word)
	r.Root, r.Verdict = a.receipt.Root, &v
	return r
}

// Assert succeeds only while every file is exactly as the receipt says, and its owner lives.
func (h *Home) Assert(path string) (*Registration, error) {
	var a *asserted
	err := h.settle(func() (err error) {
		a, err = h.assert(path)
		return err
	})
	if err != nil {
		return nil, err
	}
	defer a.state.close()
	if err := a.live(h); err != nil {
		return nil, err
	}
	return a.state.registration, nil
}

// SetPhase records the phase that the service says it is in. The receipt names the registration about to be written first, so
// that whatever is killed in between, the registration stays the receipt's. Errors: *Refusal, *regfile.Error.
func (h *Home) SetPhase(ctx context.Context, path string, phase Phase) (*Registration, error) {
	if !slices.Contains([]Phase{Idle, Stopping, Quarantined}, phase) {
		return nil, conflict(path, "cannot be set to %s: release stops a service", phase)
	}
	r, err := readReceipt(path)
	if err != nil {
		return nil, err
	}
	var out *Registration
	err = h.lock(ctx, "phase", r.Root, func(l *locked) error {
		a, err := l.assertLocked(path)
		if err != nil {
			return err
		}
		defer a.state.close()
		if err := a.live(h); err != nil {
			return err
		}
		out, err = l.setPhase(a, phase)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// assertLocked is assert under the lock, where a corrupt registry keeps it.
func (l *locked) assertLocked(path string) (*asserted, error) {
	if _, err := l.registryLocked(); err != nil {
		return nil, err
	}
	return l.assert(path)
}

func (l *locked) setPhase(a *asserted, phase Phase) (*Registration, error) {
	next := *a.state.registration
	next.Phase = phase
	pending := newReceipt(*a.state.registration, a.state.files)
	pending.Pending = identityOf(encode(next))
	if err := writeReceipt(a.path, pending); err != nil {
		return nil, err
	}
	l.iv.at("pending")
	now, err := l.replace(a.state.dir, registrationFile, a.state.files[registrationFile], encode(next))
	if err != nil {
		return nil, err
	}
	l.iv.at("registration")
	a.state.files[registrationFile] = now
	return &next, writeReceipt(a.path, newReceipt(next, a.state.files))
}

// Release ends a service: the registration is stopped, then everything of it goes, in the order of ReleaseOrder. The owner may
// be gone already. The receipt is removed at the end. Errors: *Refusal, *regfile.Error.
func (h *Home) Release(ctx context.Context, path string) (*Registration, error) {
	r, err := readReceipt(path)
	if err != nil {
		return nil, err
	}
	var out *Registration
	err = h.lock(ctx, "release", r.Root, func(l *locked) error {
		a, err := l.assertLocked(path)
		if err != nil {
			return err
		}
		defer a.state.close()
		out, err = l.release(a.reg, a.state, nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, removeReceipt(path)
}

// release carries out ReleaseOrder; before is what else must hold before each step.
func (l *locked) release(reg *Registry, state *rootState, before func() error) (*Registration, error) {
	stopped := *state.registration
	stopped.Phase = Stopped
	rows := slices.DeleteFunc(slices.Clone(reg.Rows), func(r Reservation) bool { return r.Root == stopped.Root })
	op, err := l.operation(reg, state)
	if err != nil {
		return nil, err
	}
	defer op.root.Close()
	op.before = before
	op.content = map[string][]byte{
		"stopped": encode(stopped),
		"row":     encode(rootsFile{schemaRegistry, append([]Reservation{}, rows...)}),
	}
	if err := op.run(ReleaseOrder); err != nil {
		return nil, err
	}
	return &stopped, nil
}

// Init records the configuration of a root without a service. The same one again is nothing to do; another is a conflict.
func (h *Home) Init(ctx context.Context, req Acquire) error {
	root, err := newRoot(req.Root)
	if err != nil {
		return err
	}
	if _, ok := ParseEndpoint(req.Requested); !ok {
		return invalidEndpoint(req.Requested)
	}
	return h.lock(ctx, "init", root.path, func(l *locked) error {
		reg, err := l.registryLocked()
		if err != nil {
			return err
		}
		state, err := l.readRoot(root.path)
		if err != nil {
			return err
		}
		defer state.close()
		return l.initialise(req, root, reg, state)
	})
}

func (l *locked) initialise(req Acquire, root rootDir, reg *Registry, state *rootState) error {
	had := state.config != nil
	if had && req.Policy == "" {
		req.Policy = state.config.PolicyIdentity
	}
	if had && *state.config == (configFile{schemaConfig, req.Requested, req.Policy}) {
		return nil
	}
	config, err := l.config(state, req)
	if err != nil {
		return err
	}
	op, err := l.operation(reg, state)
	if err != nil {
		return err
	}
	defer op.root.Close()
	op.content = map[string][]byte{
		"config": encode(config),
		"format": encode(serviceFormat{schemaServiceFormat, root.path, l.path, identityOf(encode(config))}),
	}
	return op.run([]Step{AcquireOrder[2], AcquireOrder[3]})
}
