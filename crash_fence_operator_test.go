//go:build linux

package holdfast_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/pkg/claim"
	"holdfast/pkg/fence"
)

// TestKilledOperator kills what operators do to a session.
func TestKilledOperator(t *testing.T) {
	for name, stage := range map[string]func(t testing.TB) fenceScene{
		"break":                   crashBreak,
		"break a reservation":     crashBreakReserved,
		"break resource-mismatch": crashBreakMismatch,
		"lease clear":             crashLeaseClear,
		"set-aside":               crashClaimSetAside,
		"tx clear":                crashTxClear,
		"tx clear by force":       crashTxClearForced,
		"tx clear of a garden":    crashArmClear,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killFence(t, stage)
		})
	}
}

func crashBreak(t testing.TB) fenceScene {
	s := newCrashSession(t)
	s.plantClaim(t, s.claim(fence.StorageOpen, s.uncertain()))
	return s.breaking(t, func(c *fence.Claim) bool {
		return c.State == fence.CloseFailed && c.Lease == fence.Unknown && c.ReclaimedFrom.Generation == crashGeneration
	})
}

func crashBreakReserved(t testing.TB) fenceScene {
	s := newCrashSession(t)
	donor := s.claim(fence.Closed, s.dead())
	s.plantClaim(t, s.reserved(s.uncertain(), donor, "absent"))
	return s.breaking(t, func(c *fence.Claim) bool {
		return c.State == fence.Closed && c.Owner == donor.Owner && *c.End == *donor.End && c.Reservation == nil
	})
}

// breaking kills a break of the claim; the line about it is there before the claim that it makes.
func (s *crashSession) breaking(t testing.TB, fits func(*fence.Claim) bool) fenceScene {
	args := []string{"break", "--dir", s.dir, "--generation", crashGeneration, "--owner-is-gone", "--reason", "R"}
	return fenceScene{crashSession: s, args: args, leaves: "breaks", judge: func(t testing.TB, a fenceAftermath) {
		lines := crashBreaks(t, a)
		switch {
		case a.written() && (len(lines) != 1 || !fits(a.claim)):
			t.Fatalf("it was broken to %+v, with the lines %q", a.claim, lines)
		case a.done && !a.written(), !a.written() && a.claim == nil:
			t.Fatalf("the claim is %+v", a.claim)
		}
	}}
}

// crashBreaks are the lines of the breaks file, each a whole one.
func crashBreaks(t testing.TB, a fenceAftermath) (lines []string) {
	t.Helper()
	for line := range strings.Lines(a.now["s/"+fence.BreaksName]) {
		if !json.Valid([]byte(line)) || !strings.HasSuffix(line, "\n") {
			t.Fatalf("the breaks file has the line %q", line)
		}
		lines = append(lines, line)
	}
	return lines
}

func crashBreakMismatch(t testing.TB) fenceScene {
	s := newCrashSession(t)
	c := s.claim(fence.Closed, s.dead())
	c.Resource = "/elsewhere"
	s.plantClaim(t, c)
	args := []string{"break", "--dir", s.dir, "--generation", crashGeneration, "--resource-mismatch", "--reason", "R"}
	return fenceScene{crashSession: s, args: args, leaves: "breaks aside", judge: func(t testing.TB, a fenceAftermath) {
		if moved := crashMoved(t, a); moved && len(crashBreaks(t, a)) != 1 {
			t.Fatalf("it was moved, and the breaks file has %q", a.now["s/"+fence.BreaksName])
		}
	}}
}

// crashMoved: the claim's old bytes are at one place, its own or aside.
func crashMoved(t testing.TB, a fenceAftermath) (moved bool) {
	t.Helper()
	const name = "s/" + fence.ClaimName
	var at []string
	for n, content := range a.now {
		if content == a.before[name] {
			at = append(at, n)
		}
	}
	if len(at) != 1 || a.done && at[0] == name {
		t.Fatalf("the claim is at %q", at)
	}
	return at[0] != name
}

func crashClaimSetAside(t testing.TB) fenceScene {
	s := newCrashSession(t)
	s.plant(t, "s/"+fence.ClaimName, []byte(crashCorrupt))
	args := []string{"set-aside", "--dir", s.dir, "--fingerprint", fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(crashCorrupt)))}
	return fenceScene{crashSession: s, args: args, leaves: "aside", judge: func(t testing.TB, a fenceAftermath) { crashMoved(t, a) }}
}

func crashLeaseClear(t testing.TB) fenceScene {
	s := newCrashSession(t)
	s.plantClaim(t, s.claim(fence.Closed, s.dead()))
	s.lease(t)
	st, err := os.Lstat(s.dir + ".lock")
	crashCheck(t, err)
	args := []string{"lease", "clear", "--dir", s.dir, "--mtime", fence.FormatLeaseTime(st.ModTime())}
	return fenceScene{crashSession: s, args: args, leaves: "breaks lease", judge: func(t testing.TB, a fenceAftermath) {
		gone := a.now["s.lock"] == ""
		if a.written() || gone && len(crashBreaks(t, a)) != 1 || a.done && !gone {
			t.Fatalf("the lease is gone: %v, and the breaks file has %q", gone, a.now["s/"+fence.BreaksName])
		}
	}}
}

// abandoned plants a claim file whose creator is dead, and returns its token.
func (s *crashSession) abandoned(t testing.TB, name string) (token string) {
	t.Helper()
	var st unix.Stat_t
	crashCheck(t, unix.Stat(s.root, &st))
	e := claim.Evidence{
		Token: crashOld, Tool: "fencectl", Op: "admit", PID: s.dead().PID, StartKey: s.dead().StartKey, Hostname: s.self.Hostname,
		EnteredAt: crashAt, Dev: st.Dev, KernelLock: true,
	}
	line, err := json.Marshal(map[string]any{
		"token": e.Token, "tool": e.Tool, "op": e.Op, "pid": e.PID, "startKey": e.StartKey, "hostname": e.Hostname,
		"enteredAt": e.EnteredAt, "dev": e.Dev, "kernelLock": e.KernelLock,
	})
	crashCheck(t, err)
	s.plant(t, name, append(line, '\n'))
	return e.Token
}

func crashTxClear(t testing.TB) fenceScene {
	s := newCrashSession(t)
	s.own(t, fence.Fenced, false)
	token := s.abandoned(t, "s/"+fence.TxName)
	return s.clearing("s/"+fence.TxName, "tx", "--dir", s.dir, "--token", token)
}

func crashTxClearForced(t testing.TB) fenceScene {
	s := newCrashSession(t)
	s.own(t, fence.Fenced, false)
	s.plant(t, "s/"+fence.TxName, nil)
	return s.clearing("s/"+fence.TxName, "tx", "--dir", s.dir, "--force", "--digest", fmt.Sprintf("sha256:%x", sha256.Sum256(nil)))
}

func crashArmClear(t testing.TB) fenceScene {
	s := newCrashSession(t)
	s.own(t, fence.Fenced, false)
	name := filepath.Join("meta/meta-record-arm-locks", crashGarden+".lock")
	token := s.abandoned(t, name)
	return s.clearing(name, "arm", "--garden", crashGarden, "--meta-root", s.meta(), "--token", token)
}

// clearing kills the clearer of a claim file: that is as it was or gone, and nothing else was touched.
func (s *crashSession) clearing(name, kind string, args ...string) fenceScene {
	return fenceScene{crashSession: s, args: append([]string{"tx", "clear"}, args...), leaves: kind,
		judge: func(t testing.TB, a fenceAftermath) {
			if changed := crashChanged(a.before, a.now); len(changed) > 1 || len(changed) == 1 && changed[0] != name || a.done && len(changed) != 1 {
				t.Fatalf("clearing changed %q", changed)
			}
		},
		again: func(t testing.TB, _ fenceAftermath) { s.finish(t) }}
}
