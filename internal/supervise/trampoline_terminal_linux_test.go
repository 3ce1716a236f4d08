package supervise

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"holdfast/internal/testkit"
	"holdfast/internal/testkit/pty"
)

// late COMMAND…: starts the command through a trampoline, and begins to pass signals on only when there is a file "typed".
func late() {
	signals := Catch()
	w, err := StartWaiting(Command{Argv: os.Args[1:], Env: os.Environ()}, "")
	if err != nil {
		fail(err)
	}
	child, err := w.Go()
	if err != nil {
		fail(err)
	}
	for {
		if _, err := os.Stat("typed"); err == nil {
			break
		}
	}
	fmt.Println("status", child.Run(signals, Hold{Check: func() {}}).Status)
}

// What the terminal sends between the start of a command and the wrapper's first look at signals has reached the command, which was
// in the group as a trampoline: it comes once.
func TestCtrlCDuringTheStartComesOnce(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("late", "sh", "-c", `trap 'n=x$n' INT; echo ready; until test "$n"; do sleep 0.01; done; echo once; touch typed
		until test -e end; do sleep 0.01; done; echo "all $n"`)
	cmd.Dir = dir
	terminal := pty.Start(t, cmd, 24, 80)
	terminal.Expect("ready")
	terminal.Send(pty.CtrlC)
	terminal.Expect("once")
	testkit.Eventually(t, "the wrapper sleeps in its loop", func() bool {
		fields := statOf(cmd.Process.Pid)
		return len(fields) > statState && fields[statState] == "S"
	})
	if err := os.WriteFile(dir+"/end", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	terminal.Expect("all x\r")
	if status := terminal.Wait(); status != 0 {
		t.Errorf("status %d: %s", status, terminal.All())
	}
}
