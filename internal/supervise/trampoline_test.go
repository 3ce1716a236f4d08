package supervise

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// held HOW COMMAND…: starts the command through a trampoline with its pid in MY_PID, and prints the pid before it lets it
// go, or cancels it.
func held() {
	w, err := StartWaiting(Command{Argv: os.Args[2:], Env: os.Environ()}, "MY_PID")
	if err != nil {
		fail(err)
	}
	fmt.Println("pid", w.PID())
	if os.Args[1] == "cancel" {
		w.Cancel()
		status, _ := w.child.Status()
		fmt.Println("cancelled", status)
		return
	}
	child, err := w.Go()
	if err != nil {
		fail(err)
	}
	r := child.Run(Catch(), Hold{Check: func() {}})
	fmt.Println("status", r.Status)
}

func fail(err error) {
	var failed *StartError
	if errors.As(err, &failed) {
		fmt.Println("failed", failed.Status, err)
	}
	os.Exit(1)
}

func runHeld(t *testing.T, args ...string) []string {
	t.Helper()
	c := exec.Command("held", args...)
	c.Stdin = strings.NewReader("input\n")
	out, err := c.Output()
	if err != nil && c.ProcessState.ExitCode() != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// The command has the pid that was known before it ran, in its environment too; its input, arguments and descriptors are
// its own, and nothing of the trampoline is left in its environment.
func TestTrampolineKeepsThePid(t *testing.T) {
	lines := runHeld(t, "go", "sh", "-c", `echo "pid $$"; echo "pid $MY_PID"; cat; echo "$0 $1"; env | grep -c TRAMPOLINE; ls /proc/self/fd | wc -l; exit 7`, "zero", "a b")
	if len(lines) != 8 || lines[0] != lines[1] || lines[0] != lines[2] {
		t.Fatalf("%q", lines)
	}
	plain, err := exec.Command("sh", "-c", "ls /proc/self/fd | wc -l").Output()
	if err != nil {
		t.Fatal(err)
	}
	want := "input|zero a b|0|" + strings.TrimSpace(string(plain)) + "|status 7"
	if got := strings.Join(lines[3:], "|"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A cancelled trampoline never becomes the command.
func TestTrampolineThatIsCancelledRunsNothing(t *testing.T) {
	file := t.TempDir() + "/ran"
	lines := runHeld(t, "cancel", "touch", file)
	if len(lines) != 2 || lines[1] != "cancelled 125" {
		t.Errorf("%q", lines)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the command ran")
	}
}

// What cannot be executed says so with the status of a command that was never one.
func TestTrampolineSaysWhyTheCommandDidNotStart(t *testing.T) {
	script := t.TempDir() + "/script"
	if err := os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{script: "failed 127 ", "/etc/passwd": "failed 126 ", "no-such-program": "failed 127 "} {
		lines := runHeld(t, "go", name)
		if last := lines[len(lines)-1]; !strings.HasPrefix(last, want) {
			t.Errorf("%s: %q, want %q", name, lines, want)
		}
	}
}
