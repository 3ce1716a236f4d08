package registry

import (
	"path/filepath"
	"time"

	"holdfast/pkg/claim"
	"holdfast/pkg/procid"
	"holdfast/pkg/regfile"
)

// State is what can be said of a root, as a stable word.
type State string

// The states. Idle, stopping, quarantined and stopped are the phases of a registration; none of them says that the service is
// ready.
const (
	StateAbsent    State = "absent"
	StateUncertain State = "uncertain"
)

// What can be said of a registered root's directory.
const (
	RootThere    = ""
	RootMissing  = "root-missing"  // nothing is there any more
	RootReplaced = "root-replaced" // another directory is there, or the path leads elsewhere
)

// Inspection is a root as it was found.
type Inspection struct {
	Root         string
	State        State
	Err          error         // why it is uncertain
	Registration *Registration // nil when there is none
	Verdict      procid.Verdict
	Directory    string // RootThere, RootMissing or RootReplaced
	Fenced       bool   // a retained lock keeps everything from changing
}

// Inspect says what the registry and the root's own files say of a root. It writes nothing and always answers.
func (h *Home) Inspect(path string) Inspection {
	in := Inspection{Root: path, State: StateAbsent}
	if root, err := Physical(path); err == nil {
		in.Root = root
	}
	err := h.settle(func() error {
		reg, err := h.Registry()
		in.Fenced = reg.Fenced
		if err != nil {
			return err
		}
		root, err := reg.rootOf(path)
		if err != nil {
			return err
		}
		in.Root = root
		state, err := h.readRoot(in.Root)
		if err != nil {
			return err
		}
		return h.inspect(&in, reg.row(in.Root), state)
	})
	if err != nil {
		in.State, in.Err = StateUncertain, err
	}
	return in
}

// settle repeats a look that finds things uncertain while an operation is under way, whose files come one after the other.
func (h *Home) settle(look func() error) error {
	for started, last := time.Now(), false; ; time.Sleep(2 * time.Millisecond) {
		err := look()
		if !isUncertain(err) || last || h.registry == nil {
			return err
		}
		in, lockErr := claim.Inspect(h.registry, lockFile)
		switch {
		case lockErr != nil:
			return err
		case in.State == claim.Absent:
			last = true // it may have ended between the two looks
		case in.State != claim.HeldNow || time.Since(started) > h.iv.lockBound:
			return err
		}
	}
}

// inspect fills in what is known of in.Root, whose state it closes. The error says why it is uncertain.
func (h *Home) inspect(in *Inspection, row *Reservation, state *rootState) error {
	defer state.close()
	in.Registration, in.State = state.registration, StateAbsent
	if r := state.registration; r != nil {
		in.State = State(r.Phase)
		in.Verdict = h.opts.Judge(r.Owner(), h.isLocal())
		in.Directory = directoryState(in.Root, r.RootStamp)
	} else if state.config != nil {
		in.State = State(Stopped)
	}
	return h.rowAgrees(in.Root, row, state.registration)
}

func (h *Home) isLocal() bool { return h.dir != nil && h.dir.IsLocal() }

// rowAgrees refuses a row without its registration, and the reverse.
func (h *Home) rowAgrees(root string, row *Reservation, reg *Registration) error {
	at := filepath.Join(h.path, registryDir, rootsName)
	running := reg != nil && reg.Phase != Stopped
	switch {
	case row == nil && !running:
		return nil
	case row == nil:
		return uncertain(at, "has no row for %s, whose registration is %s", regfile.Printable(root), reg.Phase)
	case !running:
		return uncertain(at, "has a row for %s, which has no running registration", regfile.Printable(root))
	case *row != reg.Reservation:
		return uncertain(at, "has a row for %s that is not its registration's", regfile.Printable(root))
	}
	return nil
}

// directoryState compares a root with the directory that was registered.
func directoryState(root, stamp string) string {
	st, err := regfile.Lstat(root)
	if err != nil {
		return RootMissing
	}
	real, err := filepath.EvalSymlinks(root)
	if err != nil || real != root || (inode{st.Dev, st.Ino}).String() != stamp {
		return RootReplaced
	}
	return RootThere
}

// Access is what a client of a service needs. The capability is for that client and nobody else.
type Access struct {
	Root       string
	Endpoint   string
	Epoch      string
	Capability string
	Phase      Phase
}

// Access gives a client the way to a root's service. Errors: a *Refusal of code unavailable when there is no service that can
// be talked to, or of code uncertain.
func (h *Home) Access(path string) (a *Access, err error) {
	root, err := Physical(path)
	if err != nil {
		return nil, err
	}
	err = h.settle(func() error {
		a, err = h.access(root)
		return err
	})
	return a, err
}

func (h *Home) access(root string) (*Access, error) {
	reg, err := h.Registry()
	if err != nil {
		return nil, err
	}
	unavailable := func(how string) error { return &Refusal{Code: CodeUnavailable, Path: root, Root: root, How: how} }
	if reg.Fenced {
		return nil, h.fence(CodeUnavailable, root, "an operation stopped in the middle, and keeps everything as it stands")
	}
	state, err := h.readRoot(root)
	if err != nil {
		return nil, err
	}
	defer state.close()
	row := reg.row(root)
	switch r := state.registration; {
	case r == nil || r.Phase == Stopped:
		return nil, unavailable("has no running service")
	case row == nil || *row != r.Reservation:
		return nil, unavailable("has no row that is equal to its registration")
	}
	capability, err := h.capability(state)
	if err != nil {
		return nil, err
	}
	r := state.registration
	return &Access{Root: root, Endpoint: r.Endpoint, Epoch: r.Epoch, Capability: capability, Phase: r.Phase}, nil
}

// capability reads the secret of the registration's epoch.
func (h *Home) capability(s *rootState) (string, error) {
	snap, err := readFile(s.dir, capabilityName, maxFile)
	if err != nil {
		return "", err
	}
	var c capabilityFile
	if snap == nil || decode(snap.Bytes, &c) != nil || c.Epoch != s.registration.Epoch {
		return "", uncertain(s.dir.Join(capabilityName), "changed while it was read")
	}
	return c.Capability, nil
}

// CapabilityFile is the path of a root's capability file.
func (h *Home) CapabilityFile(root string) string {
	return filepath.Join(h.path, rootsDir, RootID(root), capabilityName)
}
