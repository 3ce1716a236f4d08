package leasectl_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"holdfast/internal/testkit"
	"holdfast/internal/testkit/pty"
)

// What a full-screen program begins and ends with: the terminal's other screen.
const (
	otherScreen = `\x1b\[\?1049h`
	ownScreen   = `\x1b\[\?1049l`
)

// shellOn starts an interactive shell in a fresh scene.
func shellOn(t *testing.T) (*scene, *pty.Shell) {
	t.Helper()
	s := newScene(t)
	return s, pty.Bash(t, s.dir, string(s.mark))
}

// modes are the terminal's, to be compared.
func modes(sh *pty.Shell) string {
	shown, _ := sh.Run("stty -g")
	return shown
}

// editor is a vi.
func editor(t *testing.T) string {
	for _, name := range []string{"vi", "vim.tiny", "vim"} {
		if _, err := exec.LookPath(name); err == nil {
			return name + " -u NONE -i NONE -N"
		}
	}
	testkit.NeedTool(t, "vi")
	return ""
}

// expectRestored checks that the shell has its terminal back as it was.
func expectRestored(t *testing.T, sh *pty.Shell, before string) {
	t.Helper()
	if now := modes(sh); now != before {
		t.Errorf("the terminal's modes are %q, and were %q", now, before)
	}
	if group := sh.Foreground(); group != sh.Process.Pid {
		t.Errorf("process group %d is in front, not the shell's, %d", group, sh.Process.Pid)
	}
	if shown, status := sh.Run("read line; echo got:$line\nfrom the terminal"); status != 0 || !strings.Contains(shown, "got:from the terminal\r\n") {
		t.Errorf("reading from the terminal gives %q, status %d", shown, status)
	}
}

// TestEditorUnderRun: an editor has the screen and the keys, can be suspended and continued, and leaves both as they were.
func TestEditorUnderRun(t *testing.T) {
	t.Parallel()
	vi := editor(t)
	s, sh := shellOn(t)
	before := modes(sh)
	sh.Type("leasectl run -- " + vi + " text")
	sh.Expect(otherScreen)
	sh.Send("ifirst\rsecond\x1b")
	sh.Expect("second")
	sh.Send(pty.CtrlZ)
	sh.Expect(ownScreen)
	if got := sh.Prompt(); got != 128+19 {
		t.Errorf("status %d while the editor is stopped", got)
	}
	if shown, _ := sh.Run("jobs"); !strings.Contains(shown, "Stopped") {
		t.Errorf("jobs: %q", shown)
	}
	sh.Type("fg")
	sh.Expect(otherScreen)
	sh.Send("othird\x1b:wq\r")
	sh.Expect(ownScreen)
	if got := sh.Prompt(); got != 0 {
		t.Errorf("status %d", got)
	}
	if got := s.read("text"); got != "first\nsecond\nthird\n" {
		t.Errorf("the file is %q", got)
	}
	expectRestored(t, sh, before)
	s.expectReleased()
}

// TestPagerBehindAPipe: a pager reads its text from a pipe and its keys from the terminal.
func TestPagerBehindAPipe(t *testing.T) {
	t.Parallel()
	testkit.NeedTool(t, "less")
	s, sh := shellOn(t)
	before := modes(sh)
	sh.Type("seq 1000 1999 | leasectl run -- less")
	sh.Expect(otherScreen)
	sh.Expect("1000(?s).*1022")
	sh.Send("G")
	sh.Expect("1999")
	sh.Send("q")
	sh.Expect(ownScreen)
	if got := sh.Prompt(); got != 0 {
		t.Errorf("status %d", got)
	}
	expectRestored(t, sh, before)
	s.expectReleased()
}

// TestReadingFromTheTerminal is case B37: a child reads lines and keys from the terminal, and after the run others do.
func TestReadingFromTheTerminal(t *testing.T) {
	t.Parallel()
	s, sh := shellOn(t)
	before := modes(sh)
	sh.Type(`leasectl run -- sh -c 'echo asking; read x; echo got:$x'`)
	sh.Expect("asking\r\n")
	sh.Send("a line\n")
	sh.Expect("got:a line\r\n")
	sh.Prompt()
	sh.Type(`leasectl run -- bash -c 'echo asking; read -rsn1 key; echo key:$key'`)
	sh.Expect("asking\r\n")
	sh.Send("k")
	sh.Expect("key:k\r\n")
	if got := sh.Prompt(); got != 0 {
		t.Errorf("status %d", got)
	}
	sh.Type(`leasectl run -- sh -c 'echo asking; read x; echo got:$x'`)
	sh.Expect("asking\r\n")
	sh.Send(pty.CtrlC)
	if got := sh.Prompt(); got != 130 {
		t.Errorf("status %d after Ctrl-C", got)
	}
	expectRestored(t, sh, before)
	s.expectReleased()
}

// TestStoppedByKey: Ctrl-Z stops the child and the wrapper, and the shell is in front; fg and bg continue both, at the
// terminal's foreground and behind it.
func TestStoppedByKey(t *testing.T) {
	t.Parallel()
	s, sh := shellOn(t)
	before := modes(sh)
	sh.Type(countingRun)
	child, wrapper := s.ready()
	for i, resume := range []string{"fg", "bg"} {
		sh.Send(pty.CtrlZ)
		sh.Expect("Stopped")
		sh.Prompt()
		if !stopped(child) || !stopped(wrapper) {
			t.Fatalf("child %s, wrapper %s after Ctrl-Z", state(child), state(wrapper))
		}
		if group := sh.Foreground(); group != sh.Process.Pid {
			t.Errorf("process group %d is in front, not the shell's, %d", group, sh.Process.Pid)
		}
		sh.Type(resume)
		testkit.Eventually(t, "both go on", func() bool { return !stopped(child) && !stopped(wrapper) })
		s.expectCounted([]string{"SIGCONT", "SIGCONT"}[:i+1]...) // the shell's, and none of the wrapper's
	}
	sh.Prompt()
	if shown, _ := sh.Run("jobs"); !strings.Contains(shown, "Running") {
		t.Errorf("jobs: %q", shown)
	}
	sh.Type("fg")
	testkit.Eventually(t, "the job is in front", func() bool { return sh.Foreground() != sh.Process.Pid })
	seen := len(s.counted())
	sh.Send(pty.CtrlC)
	testkit.Eventually(t, "Ctrl-C arrives", func() bool { return len(s.counted()) > seen })
	s.endChild()
	if got := sh.Prompt(); got != 7 {
		t.Errorf("status %d, want the child's, 7", got)
	}
	expectRestored(t, sh, before)
	s.expectReleased()
}

// TestChildReadsInTheBackground: the terminal stops a job that reads it from the background, wrapper and all; fg continues
// it at once.
func TestChildReadsInTheBackground(t *testing.T) {
	t.Parallel()
	s, sh := shellOn(t)
	before := modes(sh)
	sh.Run(`leasectl run -- sh -c 'read x; echo got:$x' &`)
	testkit.Eventually(t, "the job is stopped", func() bool {
		shown, _ := sh.Run("jobs")
		return strings.Contains(shown, "Stopped")
	})
	sh.Type("fg")
	testkit.Eventually(t, "the job is in front", func() bool { return sh.Foreground() != sh.Process.Pid })
	sh.Send("a line\n")
	sh.Expect("got:a line\r\n")
	if got := sh.Prompt(); got != 0 {
		t.Errorf("status %d", got)
	}
	expectRestored(t, sh, before)
	s.expectReleased()
}

// TestWindowSize: a change of the window's size reaches the child once, and the child sees the new size.
func TestWindowSize(t *testing.T) {
	t.Parallel()
	s, sh := shellOn(t)
	sh.Type(countingRun)
	s.ready()
	sh.Resize(31, 77)
	s.expectCounted("SIGWINCH")
	s.endChild()
	sh.Prompt()
	sh.Type(`leasectl run -- sh -c 'stty size; read x; stty size'`)
	sh.Expect("31 77\r\n")
	sh.Resize(40, 100)
	sh.Send("\n")
	sh.Expect("40 100\r\n")
	sh.Prompt()
	s.expectReleased()
}

// TestRunSaysNothing: on a terminal as elsewhere, what is shown is the command's.
func TestRunSaysNothing(t *testing.T) {
	t.Parallel()
	s, sh := shellOn(t)
	for _, command := range []string{"true", "false", "sh -c 'exit 3'"} {
		if shown, _ := sh.Run("leasectl run -- " + command); shown != "" {
			t.Errorf("%s: shown is %q", command, shown)
		}
	}
	if shown, _ := sh.Run("leasectl run -- echo the command"); shown != "the command\r\n" {
		t.Errorf("shown is %q", shown)
	}
	s.expectReleased()
}

// TestSuspendedTooLong: what was suspended until its lease had ended is not continued but ended, and the shell is in front.
func TestSuspendedTooLong(t *testing.T) {
	t.Parallel()
	s, sh := shellOn(t)
	before := modes(sh)
	sh.Type("leasectl run --duration 1s --events events.jsonl -- count-signals log 2>errors")
	s.ready()
	sh.Send(pty.CtrlZ)
	sh.Expect("Stopped")
	sh.Prompt()
	s.must("leasectl", "wait", "--for", "expired", "--timeout", "30s")
	sh.Type("fg")
	status := sh.Prompt()
	testkit.Eventually(t, "only the shell is left", func() bool { return len(s.mark.Processes()) == 1 })
	if lost, _ := s.event("lost"); status != 124 || lost.Code != "expired" {
		t.Errorf("status %d, event %+v, want 124 and expired", status, lost)
	}
	expectRestored(t, sh, before)
}

// TestSuspendedWhileWaiting: Ctrl-Z suspends a wrapper that has no child yet, and fg lets it wait on.
func TestSuspendedWhileWaiting(t *testing.T) {
	t.Parallel()
	s, sh := shellOn(t)
	s.write(lockFile, heldLease)
	for range 2 {
		sh.Type("leasectl run --wait 1h -- echo 'it ''runs'")
		sh.Expect("waiting .*s for the planted one on planted, ")
		sh.Send(pty.CtrlZ)
		sh.Expect("Stopped")
		sh.Prompt()
		sh.Type("fg")
		sh.Expect("waiting .*s for the planted one on planted, ")
		sh.Send(pty.CtrlC)
		sh.Expect(`leasectl: interrupted \(interrupt\); nothing was changed`)
		if got := sh.Prompt(); got != 130 {
			t.Errorf("status %d", got)
		}
	}
	sh.Type("leasectl run --wait 1h -- echo 'it ''runs'")
	sh.Expect("waiting .*s for the planted one on planted, ")
	sh.Send(pty.CtrlZ)
	sh.Expect("Stopped")
	sh.Prompt()
	if err := os.Remove(s.path(lockFile)); err != nil {
		t.Fatal(err)
	}
	sh.Type("fg")
	sh.Expect("it runs\r\n")
	sh.Prompt()
	s.expectReleased()
}

// TestBackgroundGrandchildOnATerminal is case B38 on a terminal: the run is over when the child is, although a descendant has
// the terminal open; that one is counted and left alone.
func TestBackgroundGrandchildOnATerminal(t *testing.T) {
	t.Parallel()
	s, sh := shellOn(t)
	before := modes(sh)
	if shown, status := sh.Run("leasectl run --events events.jsonl -- sh -c 'sleep 300 & echo started'"); shown != "started\r\n" || status != 0 {
		t.Errorf("shown is %q, status %d", shown, status)
	}
	if left, _ := s.event("descendants-left"); left.Processes != 1 {
		t.Errorf("the event is %+v", left)
	}
	if running := len(s.mark.Processes()); running != 2 {
		t.Errorf("%d processes run, want the shell and the grandchild", running)
	}
	expectRestored(t, sh, before)
	s.expectReleased()
}
