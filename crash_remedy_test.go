package holdfast_test

import (
	"maps"
	"strings"
	"sync"
	"testing"

	"holdfast/internal/testkit/crash"
)

// crashCallTo finds a verb's first call whose name begins so (systems differ in the rest) and whose line mentions what is
// given.
func crashCallTo(t testing.TB, s crashScene, name, mentions string) crash.Call {
	t.Helper()
	for _, c := range crash.Calls(t, s.run(s.args...)) {
		if strings.HasPrefix(c.Name, name) && strings.Contains(c.Line, mentions) {
			return c
		}
	}
	t.Fatalf("%q makes no call %s that mentions %s", s.args, name, mentions)
	return crash.Call{}
}

// TestKilledLeavesTheWayOut waits for the claim that a killed verb left, the full bound: the refusal states the lease's
// situation first, then names the claim, and changes nothing; its remedy, then the remedy that that prints, pasted into a
// shell, lead to a new holder.
func TestKilledLeavesTheWayOut(t *testing.T) {
	var waits sync.WaitGroup // not t.Parallel, which would wait for one after the other on a small machine
	for name, c := range map[string]struct {
		stage     func(t testing.TB) crashScene
		call      string // at which it is killed, and what that mentions
		file      string
		next      []string // the mutation that meets the claim
		situation string
		state     string // of the claim
	}{
		"free, before the evidence": {crashAcquireJournaled, "write", ".mutex>",
			[]string{"acquire"}, "no lease, no live holder", "unproven"},
		"free, a number taken": {crashAcquireJournaled, "renameat", `.stage"`,
			[]string{"acquire"}, "no lease, no live holder", "abandoned"},
		"expired": {crashTakeOver, "renameat", `.stage"`,
			[]string{"acquire", "--take-over"}, "expired lease from " + crashOld, "abandoned"},
		"held, renewed": {crashRenew, "unlinkat", `.mutex"`,
			[]string{"release", "--holder", crashOld}, "lock held by " + crashOld, "abandoned"},
	} {
		waits.Go(func() {
			t.Run(name, func(t *testing.T) {
				at := crashCallTo(t, c.stage(t), c.call, c.file)
				s := c.stage(t)
				before := s.files(t)
				crash.Kill(t, s.run(s.args...), at)
				left := s.files(t)

				refusal := s.must(t, 75, "claim-timeout", c.next...)
				if !strings.HasPrefix(refusal.Reason, c.situation) || !strings.Contains(refusal.Reason, s.path(".mutex")) ||
					refusal.Claim == nil || refusal.Claim.State != c.state {
					t.Errorf("want %q, then the claim, %s: %s", c.situation, c.state, refusal.output)
				}
				if !strings.Contains(refusal.Remedy, "two holders") {
					t.Errorf("the remedy does not warn of deleting a live claim: %s", refusal.output)
				}
				if now := s.files(t); !maps.Equal(now, left) {
					t.Errorf("a refusal changed something: %q, now %q", left, now)
				}

				inspected := s.paste(t, refusal.Remedy)
				inspected.expect(t, 0, c.state)
				if c.state == "unproven" && !strings.Contains(inspected.Remedy, "two holders") {
					t.Errorf("the remedy does not say what it risks: %s", inspected.output)
				}
				s.paste(t, inspected.Remedy).expect(t, 0, "cleared")
				s.recover(t, crashAftermath{before: before, now: s.files(t)})
			})
		})
	}
	waits.Wait()
}
