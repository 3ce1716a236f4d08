package leasectl_test

import (
	"fmt"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
	"holdfast/internal/testkit/pty"
)

// TestRunEndsByTheSignal: who started the wrapper sees how the command ended, by which signal too. Only a killed command gives
// a status: nobody is to believe that the wrapper was killed. It leaves no core, and the lease is given back.
func TestRunEndsByTheSignal(t *testing.T) {
	for _, sig := range []unix.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGPIPE, unix.SIGSEGV, 40, unix.SIGKILL} {
		t.Run(fmt.Sprint(sig), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			script := fmt.Sprintf(`ulimit -c unlimited; exec leasectl run -- sh -c 'ulimit -c 0; kill -%d $$'`, int(sig))
			cmd := s.start("bash", "-c", script)
			if got := exitStatus(t, cmd); got != 128+int(sig) {
				t.Errorf("status %d, want %d", got, 128+int(sig))
			}
			ws := cmd.ProcessState.Sys().(syscall.WaitStatus)
			if ws.CoreDump() {
				t.Error("it left a core")
			}
			if ws.Signaled() != (sig != unix.SIGKILL) {
				t.Errorf("it ended with wait status %#x", uint32(ws))
			}
			s.expectReleased()
		})
	}
}

// TestRunThatNoSignalEnds: the first process of a container is ended by no signal of its own; it exits with 128 + N.
func TestRunThatNoSignalEnds(t *testing.T) {
	testkit.NeedRoot(t)
	testkit.NeedTool(t, "unshare")
	t.Parallel()
	s := newScene(t)
	cmd := s.start("unshare", "--pid", "--fork", "--mount-proc", "leasectl", "run", "--", "sh", "-c", "kill -TERM $$")
	if got := exitStatus(t, cmd); got != 143 || !cmd.ProcessState.Exited() {
		t.Errorf("%v, status %d", cmd.ProcessState, got)
	}
	s.expectReleased()
}

// TestCtrlCEndsAShellsLoop: a shell goes on with its loop after a command that exits, so Ctrl-C has to end the wrapper too,
// whether it runs a command, waits for the lease or watches it.
func TestCtrlCEndsAShellsLoop(t *testing.T) {
	for name, c := range map[string]struct{ command, lease, shows string }{
		"a command":              {"leasectl run -- sh -c 'echo run''ning; exec sleep 300'", "", "running"},
		"a command of a command": {"leasectl run --name outer -- leasectl run -- sh -c 'echo run''ning; exec sleep 300'", "", "running"},
		"run waits":              {"leasectl run --wait 1h -- true", heldLease, "waiting"},
		"acquire waits":          {"leasectl acquire --wait 1h", heldLease, "waiting"},
		"wait":                   {"leasectl wait --for free", heldLease, "waiting"},
		"watch":                  {"leasectl watch", "", "free"},
		"watch of a corrupt one": {"leasectl watch", "{", "corrupt  "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, sh := shellOn(t)
			if c.lease != "" {
				s.write(lockFile, c.lease)
			}
			sh.Type("while :; do " + c.command + "; echo once more; done")
			sh.Expect(c.shows)
			sh.Send(pty.CtrlC)
			if shown, status := sh.Shown(); status != 130 {
				t.Errorf("status %d after %q", status, shown)
			}
			testkit.Eventually(t, "only the shell is left", func() bool { return len(s.mark.Processes()) == 1 })
		})
	}
}
