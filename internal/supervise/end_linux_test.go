package supervise

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/testkit"
)

// play runs one of this binary's wrappers in dir, in a session of its own, and returns its standard output and the mark that
// what it has left behind carries. A wrapper that stops is a failure.
func play(t *testing.T, dir string, argv ...string) (out string, mark testkit.Mark) {
	t.Helper()
	mark = testkit.NewMark(t)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), string(mark))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	// A file, because a pipe would be held open by what is left.
	file, err := os.Create(dir + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd.Stdout, cmd.Stderr = file, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
	defer timer.Stop()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %v", argv, err)
	}
	b, err := os.ReadFile(dir + "/out")
	if err != nil {
		t.Fatal(err)
	}
	return string(b), mark
}

// TestEndLeavesNothing: whatever a command has started, and wherever it went, End ends and reaps it all within the grace,
// counted from /proc.
func TestEndLeavesNothing(t *testing.T) {
	const (
		terminated = "terminating true\n"
		all        = "terminating true\nterminating true\n"
		killed     = all + "killing true\n"
		anything   = "" // which of the chain is seen at a given moment is luck

		untilStopped = "(until grep -q '(stopped)' /proc/$$/status; do sleep 0.01; done; touch ready) & "
	)
	for name, c := range map[string]struct {
		script string
		grace  string
		notes  string
		tool   string
	}{
		"a child that ends at SIGTERM": {
			script: "touch ready; exec sleep 300", grace: "20s", notes: terminated},
		"a child that cleans up first": {
			script: "trap 'sleep 0.1; exit 0' TERM; touch ready; while :; do sleep 0.01; done", grace: "20s", notes: terminated},
		"a child that ignores SIGTERM": {
			script: "trap '' TERM; touch ready; while :; do sleep 0.01; done", grace: "800ms", notes: killed},
		"a child that is stopped": {
			script: untilStopped + "kill -STOP $$; exit", grace: "20s", notes: terminated},
		"a stopped child that ignores SIGTERM": {
			script: "trap '' TERM; " + untilStopped + "while :; do kill -STOP $$; done", grace: "800ms", notes: killed},
		"no grace at all": {
			script: "sleep 300 & setsid sleep 300 & touch ready; wait", grace: "0s", notes: "killing true\n"},
		"a grace that is over": {
			script: "sleep 300 & touch ready; wait", grace: "-5s", notes: "killing true\n"},
		"grandchildren whose parent has ended": {
			script: "sleep 300 & sleep 300 & touch ready; exit", grace: "8s", notes: all},
		"a daemon that has forked twice": {
			script: "setsid sh -c 'setsid sh -c \"cd /; exec sleep 300 >&- 2>&- <&-\" & touch ready' & exit", grace: "8s", notes: all},
		"a daemon that ignores SIGTERM": {
			script: "setsid sh -c 'trap \"\" TERM HUP; sh -c \"touch ready; while :; do sleep 0.01; done\" & exit' & exit", grace: "800ms", notes: killed},
		"a session of its own": {
			script: "setsid -f sleep 300; touch ready; exec setsid -w sleep 300", grace: "8s", notes: all},
		"a tree": {
			script: "i=0; while [ $((i += 1)) -le 6 ]; do sh -c 'sleep 300 & setsid sleep 300 & wait' & done; touch ready; wait", grace: "8s", notes: all},
		"a grandchild whose first thread has ended": {
			script: "setsid -f headless; until test -e ready; do sleep 0.01; done", grace: "8s", notes: all},
		"one that goes on forking children": {
			script: "trap '' TERM; touch ready; while :; do sleep 300 & sleep 0.002; done", grace: "400ms", notes: killed},
		"a chain that forks on": {
			script: `exec perl -e '$SIG{TERM} = "IGNORE"; open F, ">ready"; close F; $e = time + 60; while (time < $e) { exit if fork }'`,
			grace:  "400ms", notes: anything, tool: "perl"},
		"a pid namespace of its own": {
			script: "exec unshare --pid --fork sh -c 'sleep 300 & setsid sleep 300 & touch ready; wait'", grace: "8s", notes: all, tool: "unshare"},
		"a pid namespace whose init ignores SIGTERM": {
			script: "unshare --pid --fork sh -c 'trap \"\" TERM; (setsid sleep 300 &); touch ready; while :; do sleep 0.01; done' & exit",
			grace:  "800ms", notes: killed, tool: "unshare"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.tool != "" {
				testkit.NeedRoot(t)
				testkit.NeedTool(t, c.tool)
			}
			out, mark := play(t, t.TempDir(), "end-at-ready", c.grace, "sh", "-c", c.script)
			if want := c.notes + "left 0 true\n"; out != want && !(c.notes == anything && strings.HasSuffix(out, want)) {
				t.Errorf("it said %q, want %q", out, want)
			}
			if left := mark.Processes(); len(left) > 0 {
				t.Errorf("%d processes are left: %s", len(left), describe(left))
			}
		})
	}
}

func describe(pids []int) string {
	var b strings.Builder
	for _, pid := range pids {
		line, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		b.WriteString("\n" + strconv.Itoa(pid) + " " + strings.ReplaceAll(string(line), "\x00", " "))
	}
	return b.String()
}
