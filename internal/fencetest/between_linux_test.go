package fencetest

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// begin starts a run, and returns when its claim is there.
func (s *scene) begin(flags ...string) *wrapper {
	s.Helper()
	w := s.run(nil, flags, "sleep", "1000")
	for c := s.claim(); c == nil || c.Owner.PID != w.cmd.Process.Pid; c = s.claim() {
		if w.hasEnded() {
			s.Fatal(w.stderr())
		}
	}
	return w
}

// giveUp ends a run that was too fast for the test, and all that it leaves.
func (s *scene) giveUp(w *wrapper) {
	s.Helper()
	_ = w.cmd.Process.Kill()
	w.end()
	s.eventually(nil, dead)
	if s.show(nil).Tx != nil {
		s.clearTx()
	}
	_ = os.Remove(s.lockPath(true))
	for _, name := range s.tickets() {
		_ = os.Remove(s.file(name))
	}
	s.admitted(nil)
}

// stopAtLeased stops a wrapper that has marked leased, and whose next mark has not begun.
func (s *scene) stopAtLeased() *wrapper {
	s.Helper()
	for range 100 {
		w := s.begin()
		for s.claim().State == "fenced" && !w.hasEnded() {
			continue
		}
		w.signal(unix.SIGSTOP)
		s.await("the wrapper to stop", w.isStopped)
		if s.claim().State == "leased" && !exists(filepath.Join(s.dir, "entwurf-owner.tx")) {
			return w
		}
		s.giveUp(w)
	}
	s.Fatal("no wrapper was stopped at leased")
	return nil
}

// TestRefusedMarkEndsTheCommand: a wrapper is stopped after it has marked leased, and its claim is changed under it. It finds
// that at its next mark, and ends the command that it has just started.
func TestRefusedMarkEndsTheCommand(t *testing.T) {
	s := newScene(t)
	w := s.stopAtLeased()
	s.plant(`"generation": "`+s.claim().Generation+`"`, `"generation": "00000000000000000000000000000000"`)
	before := s.claim()
	w.signal(unix.SIGCONT)
	if status := w.end(); status != statusLost {
		t.Errorf("the status is %d: %s", status, w.stderr())
	}
	if a := w.refusal(); a.Code != generationMismatch {
		t.Errorf("%s: %s", a.Code, a.Reason)
	}
	if n := s.running("sleep", "1000"); n != 0 {
		t.Errorf("%d commands are left", n)
	}
	if now := s.claim(); *now != *before {
		t.Errorf("the claim became %+v", now)
	}
}

// TestLeaseThatAppears: another program takes the native lease after the admission, before the run does. The run is refused,
// and leaves that lease, and a claim that is over.
func TestLeaseThatAppears(t *testing.T) {
	s := newScene(t)
	for range 100 {
		w := s.begin("--native-lease", "hold")
		if os.Mkdir(s.lockPath(true), 0o755) != nil { // the run was faster
			s.giveUp(w)
			continue
		}
		if status := w.end(); status != statusRefused || w.refusal().Code != legacyLease {
			t.Errorf("status %d: %s", status, w.stderr())
		}
		if !exists(s.lockPath(true)) || s.running("sleep", "1000") != 0 {
			t.Error("the other program's lease is gone, or the command runs")
		}
		if c := s.claim(); c.State == "leased" || c.State == "storage-open" {
			t.Errorf("the claim became %+v", c)
		}
		return
	}
	t.Error("no lease appeared in time")
}

// TestRefusedMarkReleasesTheLease: a run that has taken the native lease and cannot say so gives it back, and starts nothing.
func TestRefusedMarkReleasesTheLease(t *testing.T) {
	s := newScene(t)
	tx := filepath.Join(s.dir, "entwurf-owner.tx")
	for range 100 {
		w := s.begin("--native-lease", "hold")
		for !exists(s.lockPath(true)) && !w.hasEnded() {
			continue
		}
		other, err := os.OpenFile(tx, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			s.must(other.Close())
		}
		if err != nil || s.claim().State != "fenced" { // the run was faster
			s.giveUp(w)
			continue
		}
		if status := w.end(); status != statusRefused || w.refusal().Code != "tx-held" {
			t.Errorf("status %d: %s", status, w.stderr())
		}
		s.noLocks()
		if n := s.running("sleep", "1000"); n != 0 || len(s.tickets()) > 0 {
			t.Errorf("%d commands run, tickets: %v", n, s.tickets())
		}
		s.must(os.Remove(tx))
		s.eventually(nil, dead)
		s.admitted(nil)
		return
	}
	t.Error("the run was always faster")
}
