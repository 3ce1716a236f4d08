package supervise

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
	"holdfast/internal/testkit/pty"
)

// TestRunWaitsForTheChildOnly: a run is over when the child is; what it has left behind is counted, let alone, and no zombie
// among it.
func TestRunWaitsForTheChildOnly(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		want   string
		left   int
	}{
		"nothing":                   {"exit 3", "3 0 0\n", 0},
		"killed":                    {"kill -KILL $$", "137 9 0\n", 0},
		"children":                  {"sleep 300 & sleep 300 & exit 0", "0 0 2\n", 2},
		"daemons":                   {"setsid -f sleep 300; sh -c 'setsid -f sleep 300'; exit 255", "255 0 2\n", 2},
		"orphans that have ended":   {"i=0; while [ $((i += 1)) -le 20 ]; do setsid -f true; done; sleep 0.2; exit 1", "1 0 0\n", 0},
		"killed, and left children": {"sleep 300 & kill -TERM $$; wait", "143 15 1\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, mark := play(t, t.TempDir(), "run-to-end", "sh", "-c", c.script)
			if out != c.want {
				t.Errorf("it said %q, want %q", out, c.want)
			}
			testkit.Eventually(t, "those that are left show", func() bool { return len(mark.Processes()) == c.left })
		})
	}
}

// TestStartingNeedsAProcess: where the system has none to give, nothing is said of the program.
func TestStartingNeedsAProcess(t *testing.T) {
	testkit.NeedRoot(t)
	t.Parallel()
	const line = "true start true: EAGAIN (resource temporarily unavailable)\n"
	if out, _ := play(t, t.TempDir(), "starved"); out != line+line {
		t.Errorf("it said %q", out)
	}
}

// TestStaleStop: a wrapper does not stop for a child that has been continued meanwhile, as when one signal stops both and
// another continues both. One that stopped would hang here.
func TestStaleStop(t *testing.T) {
	t.Parallel()
	if out, _ := play(t, t.TempDir(), "stale-stop"); out != "0\n" {
		t.Errorf("it said %q", out)
	}
}

// TestSignalBeforeTheChild: what the wrapper got before it had a child, and looked at after that, is the child's, in front of a
// terminal too, which has sent it to nobody else.
func TestSignalBeforeTheChild(t *testing.T) {
	for name, status := range map[string]string{"SIGINT": "130", "SIGQUIT": "131", "SIGHUP": "129", "SIGTERM": "143"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := pty.Start(t, exec.Command("early", name), 24, 80)
			p.Expect("status " + status + "\r\n")
			if out, _ := play(t, t.TempDir(), "early", name); out != "status "+status+"\n" {
				t.Errorf("without a terminal: %q", out)
			}
		})
	}
}

// TestIsBelow: what is signalled is a descendant at that moment, never a stranger.
func TestIsBelow(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sleep 300 & echo $!; exec setsid -w sleep 300")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var grandchild int
	if _, err := fmt.Fscan(stdout, &grandchild); err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{cmd.Process.Pid, grandchild} {
		if !strangers(nil).isBelow(pid) {
			t.Errorf("%d is not below", pid)
		}
	}
	for _, pid := range []int{os.Getpid(), os.Getppid(), 1, 2, 1 << 22} {
		if strangers(nil).isBelow(pid) {
			t.Errorf("%d is below", pid)
		}
	}
	_ = unix.Kill(grandchild, unix.SIGKILL)
	_ = cmd.Process.Kill()
	testkit.Eventually(t, "the zombie is no descendant", func() bool { return !strangers(nil).isBelow(cmd.Process.Pid) })
	_ = cmd.Wait()
}

// TestLeadsTo: a chain of parents of which one ends while it is followed still leads to the root, from the start again.
func TestLeadsTo(t *testing.T) {
	const root, gone = 10, 0
	type look struct{ pid, parent int }
	for name, c := range map[string]struct {
		looks []look // in this order
		want  bool
	}{
		"a child":                             {[]look{{40, root}}, true},
		"a grandchild":                        {[]look{{40, 30}, {30, root}}, true},
		"a stranger":                          {[]look{{40, 30}, {30, 1}}, false},
		"it has ended":                        {[]look{{40, gone}}, false},
		"its parent has ended":                {[]look{{40, 30}, {30, gone}, {40, root}}, true},
		"its parent has ended, and then it":   {[]look{{40, 30}, {30, gone}, {40, gone}}, false},
		"its parent has ended, to init":       {[]look{{40, 30}, {30, gone}, {40, 1}}, false},
		"two have ended, one after the other": {[]look{{40, 30}, {30, 20}, {20, gone}, {40, 30}, {30, gone}, {40, root}}, true},
	} {
		at := 0
		got := leadsTo(root, 40, func(pid int) (int, bool) {
			if at >= len(c.looks) || c.looks[at].pid != pid {
				t.Fatalf("%s: look %d is at %d", name, at, pid)
			}
			at++
			return c.looks[at-1].parent, c.looks[at-1].parent != gone
		})
		if got != c.want || at != len(c.looks) {
			t.Errorf("%s: %v after %d looks", name, got, at)
		}
	}
	if leadsTo(root, 40, func(pid int) (int, bool) { return 40 + 30 - pid, true }) {
		t.Error("a circle leads to the root")
	}
}
