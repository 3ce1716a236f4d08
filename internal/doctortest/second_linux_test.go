package doctortest

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

// A reader that has seen enough ends a listing quietly, although a filesystem in it hangs. What was found by then is the status.
func TestAReaderThatLeavesEarlyIsNoFailure(t *testing.T) {
	t.Parallel()
	killables(t, func(t *testing.T, h hanging) {
		for _, verb := range []string{"scan", "check"} {
			cmd := exec.Command("sh", "-c", `{ fsdoctor "$0" --probe-timeout 1s "$1"; echo $? >&2; } | head -n 1`, verb, h.tree)
			o := finish(t, cmd)
			if len(o.objects) != 1 || o.stderr != "0\n" && o.stderr != "1\n" {
				t.Errorf("%s: %+v", verb, o)
			}
		}
	})
}

// asking is a classify that has answered once and waits for the next path.
type asking struct {
	cmd    *exec.Cmd
	paths  *os.File
	second int
	stderr bytes.Buffer
}

func ask(t *testing.T) *asking {
	t.Helper()
	r, w, err := os.Pipe()
	must(t, err)
	a := &asking{cmd: exec.Command("fsdoctor", "classify"), paths: w}
	a.cmd.Stdin, a.cmd.Stderr = r, &a.stderr
	out, err := a.cmd.StdoutPipe()
	must(t, err)
	must(t, a.cmd.Start())
	t.Cleanup(func() { w.Close(); a.cmd.Process.Kill(); a.cmd.Wait() })
	r.Close()
	fmt.Fprintln(w, "/")
	// Each path is answered when it comes.
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, `"kind":"directory"`) {
		t.Fatalf("%q %v", line, err)
	}
	children, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", a.cmd.Process.Pid))
	must(t, err)
	for _, path := range children {
		b, _ := os.ReadFile(path)
		if text := strings.TrimSpace(string(b)); text != "" {
			a.second, err = strconv.Atoi(text)
			must(t, err)
		}
	}
	if a.second == 0 {
		t.Fatal("there is no second process")
	}
	return a
}

func TestTheEndOfTheSecondProcessIsSaid(t *testing.T) {
	t.Parallel()
	a := ask(t)
	must(t, unix.Kill(a.second, unix.SIGKILL))
	testkit.Within(t, limit, func() { a.cmd.Wait() })
	if status := testkit.StatusOf(a.cmd.ProcessState); status != 70 || !strings.Contains(a.stderr.String(), "ended before it had said everything") {
		t.Errorf("status %d: %s", status, a.stderr.String())
	}
}

func TestTheSecondProcessEndsWithTheFirst(t *testing.T) {
	t.Parallel()
	for _, sig := range []unix.Signal{unix.SIGKILL, unix.SIGTERM, unix.SIGINT} {
		a := ask(t)
		must(t, a.cmd.Process.Signal(sig))
		testkit.Within(t, limit, func() { a.cmd.Wait() })
		if status := testkit.StatusOf(a.cmd.ProcessState); status != 128+int(sig) {
			t.Errorf("status %d", status)
		}
		testkit.Within(t, limit, func() {
			for unix.Kill(a.second, 0) == nil && !zombie(a.second) {
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
}

// zombie reports whether a process has ended, and nobody has asked for its status yet.
func zombie(pid int) bool {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return strings.Contains(string(b), ") Z ")
}
