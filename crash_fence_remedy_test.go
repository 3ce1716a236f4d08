//go:build linux

package holdfast_test

import (
	"strings"
	"sync"
	"testing"

	"holdfast/internal/testkit/crash"
	"holdfast/pkg/fence"
)

// TestKilledFenceLeavesTheWayOut meets what a killed verb left of its locks: the transaction file is waited for for its full
// bound, the record-arm lock not at all. The refusal changes nothing; its remedy, then the remedy that that prints, pasted into a
// shell, lead on.
func TestKilledFenceLeavesTheWayOut(t *testing.T) {
	var waits sync.WaitGroup // not t.Parallel, which would wait for one after the other on a small machine
	for name, c := range map[string]struct {
		stage    func(t testing.TB) fenceScene
		call     string // at which it is killed, and what that mentions
		mentions string
		code     string
		state    string // of the lock
	}{
		"transaction, before the evidence": {crashMarkLeased, "write", "/" + fence.TxName + ">", "tx-held", "unproven"},
		"transaction":                      {crashMarkLeased, "renameat", fence.ClaimName + `.tmp-`, "tx-held", "abandoned"},
		"record-arm, before the evidence":  {crashReserving, "write", crashGarden + ".lock>", "record-arm-busy", "unproven"},
		"record-arm":                       {crashReserving, "openat", `"` + fence.TxName, "record-arm-busy", "abandoned"},
	} {
		waits.Go(func() {
			t.Run(name, func(t *testing.T) {
				s := killAtCall(t, c.stage, c.call, c.mentions)
				left := s.files(t)
				refused := s.fencectl(t, s.args...).is(75, c.code)
				if changed := crashChanged(left, s.files(t)); len(changed) > 0 {
					t.Errorf("a refusal changed %q", changed)
				}
				if refused.Tx == nil || refused.Tx.State != c.state {
					t.Errorf("want the lock, %s: %s", c.state, refused.output)
				}
				inspected := s.paste(t, refused.Remedy).is(0, c.state)
				if strings.Contains(inspected.Remedy, "--force") != (c.state == "unproven") {
					t.Errorf("the remedy of one that is %s: %s", c.state, inspected.output)
				}
				s.paste(t, inspected.Remedy).is(0, "cleared")
				if again := s.fencectl(t, s.args...); again.status != 0 {
					t.Error(again.output)
				}
			})
		})
	}
	waits.Wait()
}

// killAtCall kills a scene's verb at its first call whose name begins so and whose line mentions what is given.
func killAtCall(t testing.TB, stage func(t testing.TB) fenceScene, name, mentions string) fenceScene {
	t.Helper()
	whole := stage(t)
	for _, at := range crash.Calls(t, whole.run(whole.args...)) {
		if strings.HasPrefix(at.Name, name) && strings.Contains(at.Line, mentions) {
			var s fenceScene
			crash.KillStaged(t, func(t testing.TB) crash.Scene {
				s = stage(t)
				return crash.Scene{Run: s.run(s.args...)}
			}, at)
			return s
		}
	}
	t.Fatalf("%q makes no call %s that mentions %s", whole.args, name, mentions)
	return whole
}

func crashMarkLeased(t testing.TB) fenceScene {
	s := newCrashSession(t)
	s.own(t, fence.Fenced, false)
	return fenceScene{crashSession: s, args: []string{"mark", "leased", "--ticket", s.ticket}}
}

func crashReserving(t testing.TB) fenceScene {
	s := newCrashSession(t)
	s.plantClaim(t, s.claim(fence.Closed, s.dead()))
	s.plantGarden(t, s.dead())
	return fenceScene{crashSession: s, args: s.garden("reserve", "--owner-pid", s.pid())}
}
