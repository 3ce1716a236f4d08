//go:build linux

package holdfast_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/internal/testkit"
	"holdfast/internal/testkit/crash"
	"holdfast/pkg/fence"
)

// TestKilledRun kills the wrapper at each of its own calls. The owner that it was is dead then, and others follow.
func TestKilledRun(t *testing.T) {
	for name, c := range map[string]struct {
		plant func(t testing.TB, s *crashSession)
		args  []string
	}{
		"none": {func(t testing.TB, s *crashSession) { s.plantClaim(t, s.claim(fence.Closed, s.dead())) }, []string{"--native-lease", "none"}},
		"hold": {func(t testing.TB, s *crashSession) {
			s.selected = filepath.Join(s.root, "l")
			crashCheck(t, os.Symlink("s", s.selected))
		}, []string{"--native-lease", "hold"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killFence(t, func(t testing.TB) fenceScene {
				s := newCrashSession(t)
				c.plant(t, s)
				args := append(append([]string{"run", "--dir", s.selected}, c.args...), "--", "true")
				return fenceScene{crashSession: s, args: args, leaves: "hold ticket lease", judge: judgeRun}
			})
		})
	}
}

// judgeRun: what a ticket is left of names the claim, a native lease is there only while the claim may say so, and a whole run
// leaves neither.
func judgeRun(t testing.TB, a fenceAftermath) {
	t.Helper()
	for name, content := range a.now {
		kind := crashKind(name)
		switch {
		case a.done && (kind == "ticket" || kind == "lease"):
			t.Fatalf("a run that ended by itself left %s", name)
		case kind == "lease" && a.written() && a.claim.State == fence.Closed:
			t.Fatalf("the claim says that the lease was released, and %s is there", name)
		case kind == "ticket" && !strings.Contains(name, ".tmp-"):
			ticket, err := fence.DecodeTicket([]byte(content))
			crashCheck(t, err)
			if a.written() && ticket.Generation != a.claim.Generation && ticket.Pending != a.claim.Generation {
				t.Fatalf("the claim is at %s, and the ticket is %+v", a.claim.Generation, ticket)
			}
		}
	}
	if c := a.claim; a.done && (!a.written() || c.State != fence.Closed || c.End.Storage != fence.StorageClosed) {
		t.Fatalf("the claim of a whole run is %+v", c)
	}
}

// TestRunLooksAtNoOtherProcess: who has the hold open is asked when it is in somebody's way, not at each of the owner's marks.
func TestRunLooksAtNoOtherProcess(t *testing.T) {
	testkit.NeedTool(t, "strace")
	s := newCrashSession(t)
	log := filepath.Join(s.root, "log")
	cmd := exec.Command("strace", "-f", "-y", "-o", log, "-e", "trace=%file", "fencectl", "run", "--dir", s.dir, "--", "true")
	cmd.Env = append(os.Environ(), crash.MainThreadEnv+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(log)
	crashCheck(t, err)
	if strings.Contains(string(text), `"/proc/1/fd`) || !strings.Contains(string(text), fence.HoldName) {
		t.Error("a run that is in nobody's way looked at the files of other processes")
	}
}
