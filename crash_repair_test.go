package holdfast_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"holdfast/internal/testkit/crash"
	"holdfast/pkg/registry"
)

// mendScene is an operation to be cut off, and what must hold once it is repaired.
type mendScene struct {
	*mendHome
	args  []string
	ends  []string // files that the operation itself replaces or removes
	after func(t testing.TB, in registry.Inspection)
}

// TestRepaired cuts every operation off at each of its calls that change something. What is left is readable or fenced, and
// then exactly the plan of regctl repair makes it readable, loses nothing, and leaves the other root alone.
func TestRepaired(t *testing.T) {
	for name, stage := range map[string]func(t testing.TB) mendScene{
		"init in a new home":                   mendInit,
		"acquire in a new home":                mendAcquireFirst,
		"acquire beside another root":          mendAcquireSecond,
		"acquire of a root that had a service": mendAcquireAgain,
		"phase":                                mendPhase,
		"release":                              mendRelease,
		"recover":                              mendRecover,
		// Just before the commit point of the one and just after that of the other, where the plans are longest.
		"repair of an acquire": mendCutOff(mendAcquireFirst, "renameat", `"registration.json"`),
		"repair of a release":  mendCutOff(mendRelease, "renameat", `"roots.json"`),
	} {
		t.Run(name, func(t *testing.T) {
			crash.AtEveryWrite(t, func(t testing.TB) crash.Scene { return stage(t).scene(t) })
		})
	}
}

func (s mendScene) scene(t testing.TB) crash.Scene {
	before := s.files(t)
	return crash.Scene{Run: s.run(s.args...), Check: func(t testing.TB, _ crash.Call) {
		h := s.open(t)
		if !h.Inspect(s.otherRoot()).Fenced {
			s.readable(t)
		}
		h.Close()
		s.undisturbed(t)
		lost := slices.DeleteFunc(s.lostSince(t, before), func(name string) bool { return slices.Contains(s.ends, name) })
		if len(lost) > 0 {
			t.Errorf("the operation lost %q", lost)
		}
		s.mend(t)
		s.undisturbed(t)
		s.after(t, s.readable(t))
	}}
}

var (
	mendRows = []string{"roots.json", "registration.json"}
	mendAll  = append(slices.Clone(mendRows), "owner.lock", "checkout.lock", "local-capability.json")
)

// acquirable: the root has no service, and can have one.
func (m *mendHome) acquirable(t testing.TB, in registry.Inspection) {
	t.Helper()
	if in.State != registry.StateAbsent && in.State != registry.State(registry.Stopped) {
		t.Errorf("the root is %s", in.State)
	}
	m.acquire(t, m.root(), m.endpoint(), "", os.Getpid())
}

// served: either the operation came to its commit point, so that the root is served, or the root can be acquired.
func (m *mendHome) served(t testing.TB, in registry.Inspection) {
	t.Helper()
	if in.State == registry.State(registry.Idle) {
		if in.Registration.Root != m.root() || in.Registration.Endpoint != m.endpoint() {
			t.Errorf("the root has %+v", in.Registration)
		}
		return
	}
	m.acquirable(t, in)
}

// released: the receipt still releases a service that is there.
func (m *mendHome) released(t testing.TB, in registry.Inspection) {
	t.Helper()
	h := m.open(t)
	defer h.Close()
	if in.State == registry.State(registry.Idle) {
		_, err := h.Release(context.Background(), m.receipt())
		mendMust(t, err)
		in = h.Inspect(m.root())
	}
	m.acquirable(t, in)
}

func mendInit(t testing.TB) mendScene {
	m := newMendHome(t)
	return mendScene{m, []string{"init", "--root", m.root(), "--endpoint", m.requested()}, nil, m.acquirable}
}

func (m *mendHome) acquiring() []string {
	return []string{"acquire", "--root", m.root(), "--endpoint", m.requested(), "--bound", m.endpoint(), "--owner-pid", mendOwner(), "--receipt", m.receipt()}
}

func mendAcquireFirst(t testing.TB) mendScene {
	m := newMendHome(t)
	return mendScene{m, m.acquiring(), mendRows, m.served}
}

func mendAcquireSecond(t testing.TB) mendScene {
	m := newMendHome(t).beside(t)
	return mendScene{m, m.acquiring(), mendRows, m.served}
}

func mendAcquireAgain(t testing.TB) mendScene {
	m := newMendHome(t).beside(t)
	m.acquire(t, m.root(), "http://127.0.0.1:4102", m.receipt(), os.Getpid())
	h := m.open(t)
	defer h.Close()
	_, err := h.Release(context.Background(), m.receipt())
	mendMust(t, err)
	return mendScene{m, m.acquiring(), mendRows, m.served}
}

func mendPhase(t testing.TB) mendScene {
	m := newMendHome(t).beside(t)
	m.acquire(t, m.root(), m.endpoint(), m.receipt(), os.Getpid())
	return mendScene{m, []string{"phase", "stopping", "--receipt", m.receipt()}, mendRows, func(t testing.TB, in registry.Inspection) {
		h := m.open(t)
		defer h.Close()
		r, err := h.Assert(m.receipt())
		mendMust(t, err)
		if in.State != registry.State(r.Phase) || r.Phase != registry.Idle && r.Phase != registry.Stopping {
			t.Errorf("the root is %s, and its registration %s", in.State, r.Phase)
		}
		_, err = h.SetPhase(context.Background(), m.receipt(), registry.Idle)
		mendMust(t, err)
		m.released(t, h.Inspect(m.root()))
	}}
}

func mendRelease(t testing.TB) mendScene {
	m := newMendHome(t).beside(t)
	m.acquire(t, m.root(), m.endpoint(), m.receipt(), os.Getpid())
	return mendScene{m, []string{"release", "--receipt", m.receipt()}, mendAll, m.released}
}

func mendRecover(t testing.TB) mendScene {
	m := newMendHome(t).beside(t)
	owner := exec.Command("sleep", "600")
	mendMust(t, owner.Start())
	m.acquire(t, m.root(), m.endpoint(), m.receipt(), owner.Process.Pid)
	mendMust(t, owner.Process.Kill())
	_ = owner.Wait()
	h := m.open(t)
	defer h.Close()
	digest := func() string {
		found, err := h.RecoverSnapshot(m.root())
		mendMust(t, err)
		return found.Digest
	}
	return mendScene{m, []string{"recover", "release", "--root", m.root(), "--expected", digest()}, mendAll, func(t testing.TB, in registry.Inspection) {
		if in.State == registry.State(registry.Idle) {
			h := m.open(t)
			defer h.Close()
			found, err := h.RecoverSnapshot(m.root())
			mendMust(t, err)
			_, err = h.Recover(context.Background(), m.root(), found.Digest)
			mendMust(t, err)
			in = h.Inspect(m.root())
		}
		m.acquirable(t, in)
	}}
}

// mendCutOff stages the repair of an operation that was cut off at its first call of a name that mentions what is given.
func mendCutOff(stage func(t testing.TB) mendScene, call, mentions string) func(t testing.TB) mendScene {
	var once sync.Once
	var at crash.Call
	return func(t testing.TB) mendScene {
		once.Do(func() {
			s := stage(t)
			calls := crash.Calls(t, s.run(s.args...))
			i := slices.IndexFunc(calls, func(c crash.Call) bool {
				return strings.HasPrefix(c.Name, call) && strings.Contains(c.Line, mentions)
			})
			if i < 0 {
				t.Fatalf("%q makes no call %s that mentions %s", s.args, call, mentions)
			}
			at = calls[i]
		})
		s := stage(t)
		crash.Kill(t, s.run(s.args...), at)
		plan := s.regctl(t, "repair")
		s.args, s.ends = []string{"repair", "--apply", "--expected", plan[len(plan)-1].Digest}, nil
		if s.other != "" {
			s.note(t)
		}
		return s
	}
}
