package supervise

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// elsewhereParent starts "elsewhere HOW" as a wrapper starts its command, prints its pid, and waits.
func elsewhereParent() {
	child := start([]string{"elsewhere", os.Args[1]})
	fmt.Println(child.PID)
	time.Sleep(time.Minute)
}

// elsewhere HOW: executes sleep in a thread that is not the first, bound to the parent or not.
func elsewhere() {
	path, err := exec.LookPath("sleep")
	if err != nil {
		panic(err)
	}
	runtime.LockOSThread() // the first thread stays with this goroutine
	go func() {
		runtime.LockOSThread()
		if os.Args[1] == "bound" {
			bindToParent()
		}
		fmt.Println("executes")
		panic(unix.Exec(path, []string{"sleep", "60"}, os.Environ()))
	}()
	select {}
}

// The parent-death signal belongs to a thread: a command that another thread executes than the first dies with its wrapper
// only when that thread has it.
func TestTheThreadThatExecutesIsBoundToTheParent(t *testing.T) {
	for how, dies := range map[string]bool{"bound": true, "unbound": false} {
		t.Run(how, func(t *testing.T) {
			wrapper := exec.Command("elsewhere-parent", how)
			out, err := wrapper.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := wrapper.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			pid := 0
			for range 2 { // in either order
				lines.Scan()
				if n, err := strconv.Atoi(lines.Text()); err == nil {
					pid = n
				}
			}
			for comm := ""; comm != "sleep\n"; time.Sleep(time.Millisecond) {
				b, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
				if err != nil {
					t.Fatal(err)
				}
				comm = string(b)
			}
			_ = wrapper.Process.Kill()
			_ = wrapper.Wait()
			defer unix.Kill(pid, unix.SIGKILL)
			if died := diesWithin(pid, map[bool]time.Duration{true: 10 * time.Second, false: time.Second}[dies]); died != dies {
				t.Errorf("died: %v", died)
			}
		})
	}
}

func diesWithin(pid int, patience time.Duration) bool {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if fields := statOf(pid); len(fields) <= statState || fields[statState] == "Z" {
			return true
		}
	}
	return false
}
