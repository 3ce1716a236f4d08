package fencetest

import (
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// moment is when a wrapper is stopped, and then killed.
type moment struct {
	name string
	come func(s *scene, w *wrapper) bool // polled
}

// moments of a run: by the clock, and right after each of its writes, unless the next one was faster.
func moments() []moment {
	reached := func(state ...string) func(s *scene, w *wrapper) bool {
		return func(s *scene, w *wrapper) bool {
			c := s.claim()
			return c != nil && slices.Contains(state, c.State) && c.Owner.PID == w.cmd.Process.Pid
		}
	}
	return []moment{
		{"any", func(*scene, *wrapper) bool {
			time.Sleep(time.Duration(rand.Int64N(int64(60 * time.Millisecond))))
			return true
		}},
		{"fenced", reached("fenced", "leased", "storage-open")},
		{"leased", reached("leased", "storage-open")},
		{"storage-open", reached("storage-open")},
	}
}

// stopAt runs a command and stops the wrapper at the moment, or a little later.
func (s *scene) stopAt(m moment, flags ...string) *wrapper {
	s.Helper()
	w := s.run(nil, flags, "sleep", "1000")
	for deadline := time.Now().Add(patience); !m.come(s, w); {
		if w.hasEnded() || time.Now().After(deadline) {
			s.Fatalf("never %s: %s", m.name, w.stderr())
		}
	}
	if rand.IntN(2) == 0 {
		time.Sleep(time.Duration(rand.Int64N(int64(3 * time.Millisecond))))
	}
	w.signal(unix.SIGSTOP)
	return w
}

// TestKilledAtAnyMoment: a hundred times, a wrapper is stopped and killed somewhere between its start and its command's. It always
// leaves a claim that the next admission can judge, at worst with a transaction file that inspect names, and no command.
func TestKilledAtAnyMoment(t *testing.T) {
	s := newScene(t)
	states, cleared := map[string]int{}, 0
	all := moments()
	for i := range times(100) {
		m := all[i%len(all)]
		w := s.stopAt(m)
		if i%25 == 23 {
			s.keptOutByTheStopped(w)
		}
		w.kill()
		s.await("the end of the command", func() bool { return s.running("sleep", "1000") == 0 })
		a := s.show(nil)
		if a.Status != 0 || a.Claim != nil && a.Verdict != dead && a.Code != "closed" {
			s.await("a verdict", func() bool { a = s.show(nil); return a.Verdict == dead })
		}
		states[a.Code]++
		if a.Tx != nil {
			cleared++
			s.clearTx()
		}
		s.admitted(nil)
	}
	t.Logf("killed at %v; %d transaction files cleared", states, cleared)
}

// keptOutByTheStopped fails if somebody is admitted beside a stopped wrapper that has its claim.
func (s *scene) keptOutByTheStopped(w *wrapper) {
	s.Helper()
	time.Sleep(20 * time.Millisecond) // it is stopped
	before := s.claim()
	if before == nil || before.Owner.PID != w.cmd.Process.Pid {
		return
	}
	if a := s.admit(nil); a.Code != ownerLive && a.Code != "tx-held" {
		s.Errorf("beside a stopped wrapper: %s: %s", a.Code, a.Reason)
	}
	if now := s.claim(); now.Generation != before.Generation {
		s.Errorf("the claim changed while its owner was stopped: %+v", now)
	}
}

// clearTx does what inspect says about the transaction file of a wrapper that was killed. One that was killed before it had
// written a word there has left nothing that could prove it.
func (s *scene) clearTx() {
	s.Helper()
	a := s.ask(nil, "tx", "inspect", "--dir", s.dir)
	content := s.read(filepath.Join(s.dir, "entwurf-owner.tx"))
	if want := map[bool]string{false: "abandoned", true: "unproven"}[content == ""]; a.Code != want {
		s.Fatalf("the transaction file is %s: %+v\n%s", a.Code, a, content)
	}
	if out, err := exec.Command("sh", "-c", a.Remedy).CombinedOutput(); err != nil {
		s.Fatalf("%s: %v: %s", a.Remedy, err, out)
	}
}

// TestKilledWithANativeLease: a wrapper that was killed while it took the native lease leaves that to the next run, or, where
// the claim does not say yet whose it is, to an operator, who is told how.
func TestKilledWithANativeLease(t *testing.T) {
	for _, m := range moments() {
		t.Run(m.name, func(t *testing.T) {
			s := newScene(t)
			s.byLink()
			for range 3 {
				s.stopAt(m, "--native-lease", "hold", "--native-stale", "1s").kill()
				s.await("a verdict", func() bool { a := s.show(nil); return a.Claim == nil || a.Verdict == dead || a.Code == "closed" })
				if s.show(nil).Tx != nil {
					s.clearTx()
				}
				for names := 2; s.nextRun() != 0; names-- {
					if names == 0 {
						t.Fatal("the next run is refused, and there is nothing left to clear")
					}
				}
				s.noLocks()
			}
		})
	}
}

// nextRun runs a command to its end and returns its status. When it is refused it clears the lease that is in the way, as it
// is told.
func (s *scene) nextRun() int {
	s.Helper()
	w := s.run(nil, []string{"--native-lease", "hold", "--native-stale", "1s"}, "true")
	status := w.end()
	if status == 0 {
		return 0
	}
	a := w.refusal()
	command, _, found := strings.Cut(a.Remedy, " #")
	if a.Code != legacyLease && a.Code != "lease-unattributed" || !found {
		s.Fatalf("%s: %s\n%s", a.Code, a.Reason, a.Remedy)
	}
	if out, err := exec.Command("sh", "-c", command+" --min-age 0s").CombinedOutput(); err != nil {
		s.Fatalf("%s: %v: %s", command, err, out)
	}
	return status
}

// TestTerminatedAtAnyMoment: a wrapper that is told to end undoes what it has begun, or passes it on to its command.
func TestTerminatedAtAnyMoment(t *testing.T) {
	s := newScene(t)
	states, all := map[string]int{}, moments()
	for i := range times(40) {
		w := s.stopAt(all[i%len(all)], "--native-lease", []string{"none", "hold"}[i/len(all)%2])
		w.signal(unix.SIGTERM)
		w.signal(unix.SIGCONT)
		w.end()
		a := s.show(nil)
		states[a.Code]++
		if a.Code != "absent" && a.Code != "closed" && a.Code != "close-failed" {
			t.Errorf("it is %s: %s", a.Code, w.stderr())
		}
		s.tidy()
		s.noLocks()
		if left := s.tickets(); len(left) > 0 {
			t.Errorf("tickets are left: %v; standard error: %s", left, w.stderr())
		}
		if n := s.running("sleep", "1000"); n != 0 {
			t.Errorf("%d commands are left", n)
		}
		if s.run(nil, nil, "true").end() != 0 {
			t.Errorf("the next run is refused after %s", a.Code)
		}
	}
	t.Logf("terminated at %v", states)
}
