package fencetest

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
	"holdfast/internal/testkit/pty"
)

// untilEnd is a command that stays until it is told to end, and ends with status 7.
const untilEnd = `touch "$OUT/started"; until test -e "$OUT/end"; do sleep 0.02; done; exit 7`

// underRun starts untilEnd, and returns when the run has said that it has begun.
func (s *scene) underRun(flags ...string) *wrapper {
	s.Helper()
	w := s.run(nil, flags, "sh", "-c", untilEnd)
	s.await("the command", func() bool { return exists(s.file("started")) && s.isOpen() })
	return w
}

// ends fails unless the run ends with the status, the claim in the state, and the end of storage.
func (w *wrapper) ends(status int, state, storage string) *claim {
	w.s.Helper()
	got, c := w.end(), w.s.claim()
	if got != status || c == nil || c.State != state || c.End == nil || c.End.Storage != storage {
		w.s.Errorf("status %d, claim %+v, want %d, %s, storage %s; standard error:\n%s", got, c, status, state, storage, w.stderr())
	}
	return c
}

// TestStatus: the command's own status, 128 and the number of a signal, and the wrapper's own when it cannot be executed.
func TestStatus(t *testing.T) {
	script := func(text string) []string { return []string{"sh", "-c", text} }
	for name, c := range map[string]struct {
		command        []string
		status         int
		state, storage string
	}{
		"0":                   {script("exit 0"), 0, "closed", "closed"},
		"42":                  {script("exit 42"), 42, "closed", "closed"},
		"124, of the command": {script("exit 124"), 124, "closed", "closed"},
		"SIGTERM":             {script("kill -TERM $$"), 143, "close-failed", "unknown"},
		"SIGKILL":             {script("kill -KILL $$"), 137, "close-failed", "unknown"},
		"no such program":     {[]string{"no-such-program"}, 127, "closed", "never-opened"},
		"not executable":      {[]string{"/etc/passwd"}, 126, "closed", "never-opened"},
		"a directory":         {[]string{"/etc"}, 126, "closed", "never-opened"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			w := s.run(nil, nil, c.command...)
			w.ends(c.status, c.state, c.storage)
			if own := c.status == 126 || c.status == 127; own != strings.Contains(w.stderr(), "fencectl: ") {
				t.Errorf("standard error: %s", w.stderr())
			}
			if left := s.tickets(); len(left) > 0 {
				t.Errorf("tickets are left: %v", left)
			}
			s.tidy()
			s.admitted(nil)
		})
	}
}

// tickets are the names of those that runs have made and not removed.
func (s *scene) tickets() (names []string) {
	s.Helper()
	entries, err := os.ReadDir(s.out)
	s.must(err)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "fencectl-") {
			names = append(names, e.Name())
		}
	}
	return names
}

// TestCtrlCIsCountedOnce: the terminal sends it to the command, which decides what it means.
func TestCtrlCIsCountedOnce(t *testing.T) {
	s := newScene(t)
	p := pty.Start(t, s.command("fencectl", "run", "--dir", s.dir, "--", "tally"), 24, 80)
	p.Expect("ready")
	s.await("the mark", s.isOpen)
	p.Send(pty.CtrlC)
	status := p.Wait()
	p.Drain()
	if n := strings.Count(p.All(), "got interrupt"); n != 1 || status != 3 || s.claim().State != "closed" {
		t.Errorf("%d times, status %d, %s", n, status, s.claim().State)
	}
}

// TestSignalsArePassedOn, each once.
func TestSignalsArePassedOn(t *testing.T) {
	for sig, word := range map[unix.Signal]string{unix.SIGTERM: "terminated", unix.SIGUSR1: "user defined signal 1"} {
		t.Run(word, func(t *testing.T) {
			s := newScene(t)
			w := s.run(nil, nil, "tally")
			s.await("the command", func() bool { return w.stdout() == "ready\n" && s.isOpen() })
			w.signal(sig)
			w.ends(3, "closed", "closed")
			if got := w.stdout(); got != "ready\ngot "+word+"\n" {
				t.Errorf("the command said %q", got)
			}
		})
	}
}

// leaving is a command that leaves a process behind, which stays until it is told to end.
const leaving = `setsid -f ` + stay + `; until test -e "$OUT/started"; do sleep 0.02; done; touch "$OUT/exiting"; exit 7`

// TestLeftoversAreWaitedFor: what the command has left running belongs to it; closed is only said when it is gone.
func TestLeftoversAreWaitedFor(t *testing.T) {
	s := newScene(t)
	w := s.run(nil, []string{"--leftover-wait", "1m"}, "sh", "-c", leaving)
	s.await("the end of the command", func() bool { return exists(s.file("exiting")) })
	time.Sleep(300 * time.Millisecond)
	if w.hasEnded() || s.claim().State != "storage-open" {
		t.Errorf("%s, standard error: %s", s.claim().State, w.stderr())
	}
	s.refused(nil, ownerLive)
	s.touch("end")
	w.ends(7, "closed", "closed")
}

// TestLeftoversThatStay: when the time is over, or at a signal, the end is unknown, and nobody is admitted until they are gone.
func TestLeftoversThatStay(t *testing.T) {
	for name, c := range map[string]struct {
		wait string
		sig  unix.Signal
	}{"the time is over": {"100ms", 0}, "no time": {"0s", 0}, "a signal": {"1m", unix.SIGTERM}} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			w := s.run(nil, []string{"--leftover-wait", c.wait}, "sh", "-c", leaving)
			s.await("the end of the command", func() bool { return exists(s.file("exiting")) && s.running("sh", "-c", leaving) == 0 })
			for c.sig != 0 && !w.hasEnded() {
				_ = w.cmd.Process.Signal(c.sig)
				time.Sleep(50 * time.Millisecond)
			}
			end := w.ends(7, "close-failed", "unknown")
			if !strings.Contains(end.End.Cause, "left running") || !strings.Contains(w.stderr(), "still running") {
				t.Errorf("the cause is %q, standard error: %s", end.End.Cause, w.stderr())
			}
			s.refused(nil, ownerUncertain)
			s.touch("end")
			s.eventually(nil, dead)
			if a := s.admitted(nil); a.Claim.ReclaimedFrom == nil || a.Claim.ReclaimedFrom.State != "close-failed" {
				t.Errorf("the claim is %+v", a.Claim)
			}
		})
	}
}

// TestStoppedWrapper: a wrapper that is stopped and continued goes on; the command has not noticed.
func TestStoppedWrapper(t *testing.T) {
	s := newScene(t)
	w := s.underRun()
	w.signal(unix.SIGSTOP)
	s.refused(nil, ownerLive)
	s.touch("end")
	time.Sleep(200 * time.Millisecond) // the command ends meanwhile
	s.refused(nil, ownerLive)
	w.signal(unix.SIGCONT)
	w.ends(7, "closed", "closed")
}

// TestStoppedCommand: when the command stops so does the wrapper, for a shell's sake, and continues it when it is itself
// continued.
func TestStoppedCommand(t *testing.T) {
	s := newScene(t)
	w := s.run(nil, nil, "sh", "-c", `touch "$OUT/started"; kill -STOP $$; exit 7`)
	s.await("the wrapper to stop", w.isStopped)
	s.refused(nil, ownerLive)
	w.signal(unix.SIGCONT)
	w.ends(7, "closed", "closed")
}

// TestLostWhileTheCommandRuns: whatever becomes of the directory or its claim, the run does not end as if nothing had been, and
// changes nothing of it.
func TestLostWhileTheCommandRuns(t *testing.T) {
	write := func(s *scene, text string) {
		s.must(os.Remove(s.claimPath()))
		s.must(os.WriteFile(s.claimPath(), []byte(text), 0o600))
	}
	aside := func(s *scene) { s.must(os.Rename(s.dir, s.dir+".aside")) }
	for name, c := range map[string]struct {
		code  string
		spoil func(s *scene)
	}{
		"the directory removed":    {"directory-invalid", func(s *scene) { s.must(os.RemoveAll(s.dir)) }},
		"the directory moved away": {"directory-invalid", aside},
		"an empty one in its place": {"claim-missing", func(s *scene) {
			aside(s)
			s.must(os.Mkdir(s.dir, 0o755))
		}},
		"another owner's in its place": {generationMismatch, func(s *scene) {
			aside(s)
			s.must(os.Mkdir(s.dir, 0o755))
			s.admitted(nil)
		}},
		"a file in its place": {"directory-invalid", func(s *scene) {
			aside(s)
			s.must(os.WriteFile(s.dir, nil, 0o644))
		}},
		"the claim removed":              {"claim-missing", func(s *scene) { s.must(os.Remove(s.claimPath())) }},
		"the claim of another directory": {"claim-resource-mismatch", func(s *scene) { s.plant(s.dir, s.dir+"x") }},
		"half a claim":                   {"claim-unreadable", func(s *scene) { write(s, "{") }},
		"a newer claim":                  {"schema-newer", func(s *scene) { s.plant(`"schemaVersion": 3`, `"schemaVersion": 9`) }},
		"a named pipe as the claim": {"not-regular", func(s *scene) {
			s.must(os.Remove(s.claimPath()))
			s.must(unix.Mkfifo(s.claimPath(), 0o600))
		}},
		"another generation": {generationMismatch, func(s *scene) {
			s.plant(`"generation": "`+s.claim().Generation+`"`, `"generation": "00000000000000000000000000000000"`)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			w := s.underRun()
			c.spoil(s)
			before, _ := testkit.Listing(s.dir)
			s.touch("end")
			if status := w.end(); status != statusLost {
				t.Errorf("the status is %d", status)
			}
			if a := w.refusal(); a.Code != c.code || !strings.HasSuffix(w.stderr(), "status 124 is fencectl's own\n") {
				t.Errorf("%s, want %s: %s", a.Code, c.code, w.stderr())
			}
			if now, _ := testkit.Listing(s.dir); now != before {
				t.Errorf("it was %s, and is %s", before, now)
			}
		})
	}
}
