package registry

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"holdfast/pkg/procid"
	"holdfast/pkg/regfile"
)

// Leftover is a service as a recovery finds it, with a digest that stands for exactly this state.
type Leftover struct {
	Registration Registration
	Verdict      procid.Verdict
	Digest       string // of every file's identity and stamp, and of the row
}

// RecoverSnapshot looks at a service that is to be recovered. It writes nothing. Errors: a *Refusal of code quarantine under a
// retained lock, conflict when there is no service, uncertain.
func (h *Home) RecoverSnapshot(path string) (*Leftover, error) {
	var out *Leftover
	err := h.settle(func() error {
		reg, err := h.Registry()
		if err != nil {
			return err
		}
		root, err := reg.rootOf(path)
		if err != nil {
			return err
		}
		if reg.Fenced {
			return h.fence(CodeQuarantine, root, "repair comes before recovery")
		}
		state, err := h.readRoot(root)
		if err != nil {
			return err
		}
		defer state.close()
		out, err = h.leftover(root, reg, state)
		return err
	})
	return out, err
}

// leftover is the service of a root, whose row and registration have to agree.
func (h *Home) leftover(root string, reg *Registry, state *rootState) (*Leftover, error) {
	if r := state.registration; r == nil || r.Phase == Stopped {
		return nil, conflict(root, "has no service to recover")
	}
	if err := h.rowAgrees(root, reg.row(root), state.registration); err != nil {
		return nil, err
	}
	return &Leftover{
		Registration: *state.registration,
		Verdict:      h.opts.Judge(state.registration.Owner(), h.isLocal()),
		Digest:       state.digest(*reg.row(root)),
	}, nil
}

// digest stands for everything of a root that takes part, the capability by its stamp alone, and for its row.
func (s *rootState) digest(row Reservation) string {
	var b strings.Builder
	for _, name := range readNames {
		if f := s.files[name]; f != nil {
			fmt.Fprintf(&b, "%s %s %+v\n", name, f.Identity, f.Stamp)
		}
	}
	b.Write(encode(row))
	return "sha256:" + identityOf([]byte(b.String()))
}

// Recover releases a service whose owner is proven dead, in exactly the state of the digest. Before each step the owner is judged
// again. Errors: a *Refusal of code quarantine with the verdict of an owner that is not dead, conflict when the digest is of
// another state.
func (h *Home) Recover(ctx context.Context, path, expected string) (*Registration, error) {
	seen, err := h.Registry()
	if err != nil && !isUncertain(err) { // what is uncertain may settle, and is judged in the lock
		return nil, err
	}
	root, err := seen.rootOf(path)
	if err != nil {
		return nil, err
	}
	var out *Registration
	err = h.lock(ctx, "recover", root, func(l *locked) error {
		reg, err := l.registryLocked()
		if err != nil {
			return err
		}
		state, err := l.readRoot(root)
		if err != nil {
			return err
		}
		defer state.close()
		found, err := l.leftover(root, reg, state)
		if err != nil {
			return err
		}
		dead := func() error { return l.ownerDead(found.Registration) }
		if err := dead(); err != nil {
			return err
		}
		if found.Digest != expected {
			return conflict(root, "is not in the state of that digest any more")
		}
		out, err = l.release(reg, state, dead)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// ownerDead refuses unless the owner is proven dead.
func (l *locked) ownerDead(r Registration) error {
	v := l.opts.Judge(r.Owner(), l.isLocal())
	if v.Word == procid.Dead {
		return nil
	}
	return &Refusal{Code: CodeQuarantine, Path: filepath.Join(l.path, rootsDir, RootID(r.Root)), Root: r.Root, Verdict: &v,
		How: fmt.Sprintf("has an owner, pid %d on %s, that is not proven dead: %s", r.PID, regfile.Printable(r.Host), v.Reason)}
}
