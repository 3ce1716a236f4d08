package leasectl_test

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
	"holdfast/internal/testkit/pty"
)

// sent are the signals of case B34, in the order in which each test sends them.
var sent = []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2}

const countingRun = "leasectl run --events events.jsonl -- count-signals log"

// sendAll sends a change of the window's size, which is never passed on, and then each signal. It waits for those that are
// to reach the child, so that what the child counts is in order and nothing is merged.
func (s *scene) sendAll(wrapper int, reaching []unix.Signal) (want []string) {
	s.t.Helper()
	send(s.t, wrapper, unix.SIGWINCH)
	for _, sig := range sent {
		send(s.t, wrapper, sig)
		if slices.Contains(reaching, sig) {
			want = append(want, unix.SignalName(sig))
			testkit.Eventually(s.t, "the child has counted "+unix.SignalName(sig), func() bool { return len(s.counted()) >= len(want) })
		}
	}
	return want
}

// TestSignalsToTheWrapper is case B34: the wrapper alone gets each signal. The child gets it exactly once, unless the wrapper
// was started with it ignored; the wrapper waits, gives the lease back, and ends with the child's status.
func TestSignalsToTheWrapper(t *testing.T) {
	without := func(left ...unix.Signal) []unix.Signal {
		return slices.DeleteFunc(slices.Clone(sent), func(s unix.Signal) bool { return slices.Contains(left, s) })
	}
	for name, c := range map[string]struct {
		command  []string
		reaching []unix.Signal
	}{
		"without a terminal":         {[]string{"sh", "-c", "exec " + countingRun}, sent},
		"background of a script":     {[]string{"sh", "-c", countingRun + " & wait $!"}, without(unix.SIGINT, unix.SIGQUIT)},
		"under nohup":                {[]string{"sh", "-c", "exec nohup " + countingRun}, without(unix.SIGHUP)},
		"under setsid":               {[]string{"sh", "-c", "exec setsid -w " + countingRun}, sent},
		"with the interrupt ignored": {[]string{"sh", "-c", "trap '' INT; " + countingRun}, without(unix.SIGINT, unix.SIGQUIT)},
		"in a pipeline of a script":  {[]string{"bash", "-c", "set -o pipefail; : | " + countingRun + " | cat"}, sent},
		"below another wrapper":      {[]string{"sh", "-c", "exec leasectl run --name outer -- " + countingRun}, sent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			cmd := s.command(c.command[0], c.command[1:]...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_, wrapper := s.ready()
			want := s.sendAll(wrapper, c.reaching)
			s.expectCounted(want...)
			s.endChild()
			if got := exitStatus(t, cmd); got != 7 {
				t.Errorf("status %d, want the child's, 7", got)
			}
			s.expectReleased()
		})
	}
}

// TestSignalsInTheForeground: at a terminal's foreground the keys' signals reach the child from the terminal, so the wrapper
// does not pass on INT, QUIT and HUP, and survives them.
func TestSignalsInTheForeground(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	sh := pty.Bash(t, s.dir, string(s.mark))
	sh.Type(countingRun)
	_, wrapper := s.ready()
	want := s.sendAll(wrapper, []unix.Signal{unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2})
	s.expectCounted(want...)
	for _, key := range []struct{ press, signal string }{
		{pty.CtrlC, "SIGINT"}, {pty.CtrlBackslash, "SIGQUIT"}, {pty.CtrlC, "SIGINT"},
	} {
		sh.Send(key.press)
		want = append(want, key.signal)
		s.expectCounted(want...)
	}
	s.endChild()
	if got := sh.Prompt(); got != 7 {
		t.Errorf("status %d, want the child's, 7", got)
	}
	s.expectReleased()
}

// TestSignalsInTheBackground: behind an interactive shell's prompt no key reaches the child, and every signal to the wrapper
// does.
func TestSignalsInTheBackground(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	sh := pty.Bash(t, s.dir, string(s.mark))
	sh.Run(countingRun + " &")
	_, wrapper := s.ready()
	sh.Send(pty.CtrlC)
	sh.Prompt()
	s.expectCounted(s.sendAll(wrapper, sent)...)
	s.endChild()
	if _, got := sh.Run("wait %1"); got != 7 {
		t.Errorf("status %d, want the child's, 7", got)
	}
	s.expectReleased()
}

// TestSignalWhileWaiting: a signal ends the wait for the lease with 128 + its number; the command is not started, standard
// output is empty, and nothing is written.
func TestSignalWhileWaiting(t *testing.T) {
	for _, sig := range sent {
		t.Run(unix.SignalName(sig), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.write(lockFile, heldLease)
			cmd, out, errs := s.waitingRun()
			send(t, cmd.Process.Pid, sig)
			if got := exitStatus(t, cmd); got != 128+int(sig) {
				t.Errorf("status %d, want %d", got, 128+int(sig))
			}
			if out.Len() > 0 {
				t.Errorf("on standard output: %s", out)
			}
			if want := "leasectl: interrupted (" + sig.String() + "); nothing was changed"; lastLine(errs.String()) != want {
				t.Errorf("the last line is %q, want %q", lastLine(errs.String()), want)
			}
			if s.read(lockFile) != heldLease || s.read(lockFile+".journal") != "" || s.read("started") != "" {
				t.Error("something was changed")
			}
		})
	}
}

// waitingRun starts a run that finds the lease held, and returns when it waits.
func (s *scene) waitingRun() (cmd *exec.Cmd, out, errs *bytes.Buffer) {
	s.t.Helper()
	cmd = s.command("leasectl", "run", "--wait", "1h", "--", "sh", "-c", "echo started >started")
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, errs
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	testkit.Eventually(s.t, "it waits", func() bool { return watches(cmd.Process.Pid) })
	return cmd, out, errs
}

// TestTerminalCloses: the child learns of the hang-up, in front and behind; the wrapper survives it, waits for the child and
// gives the lease back. How often is not for the wrapper to say: the shell and the kernel both tell the foreground.
func TestTerminalCloses(t *testing.T) {
	for name, suffix := range map[string]string{"in the foreground": "", "in the background": " &"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, sh := shellOn(t)
			sh.Type(countingRun + suffix)
			child, wrapper := s.ready()
			sh.HangUp()
			testkit.Eventually(t, "the hang-up arrives", func() bool { return slices.Contains(s.counted(), "SIGHUP") })
			time.Sleep(settle)
			if state(child) == "" || state(wrapper) == "" || s.read(lockFile) == "" {
				t.Error("the run did not go on")
			}
			s.endChild()
			testkit.Eventually(t, "the run has ended", func() bool { return len(s.mark.Processes()) == 0 })
			s.expectReleased()
		})
	}
}

// TestHangUpArrivesOnce: the shell tells its jobs, each as a whole, that the terminal is gone, so the wrapper does not; for the
// wrapper that is the terminal's first process, and the only one that the kernel tells, it does.
func TestHangUpArrivesOnce(t *testing.T) {
	for name, command := range map[string][]string{
		"from the shell":  {"bash", "-c", `set -m; trap 'kill -HUP -- -$!' HUP; ` + countingRun + ` & until wait $!; test $? -lt 128; do :; done`},
		"from the kernel": strings.Fields(countingRun),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			cmd := s.command(command[0], command[1:]...)
			p := pty.Start(t, cmd, 24, 80)
			_, wrapper := s.ready()
			p.HangUp()
			s.expectCounted("SIGHUP")
			send(t, wrapper, unix.SIGTERM)
			s.expectCounted("SIGHUP", "SIGTERM")
			s.endChild()
			testkit.Eventually(t, "the run has ended", func() bool { return len(s.mark.Processes()) == 0 })
			s.expectReleased()
		})
	}
}
