package procid

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

// parts are what this test binary does as another process. Those that take another part as their argument play it in
// the circumstances they make.
func parts() map[string]testkit.Part {
	return map[string]testkit.Part{
		"self":           self,
		"named":          named,
		"leaderless":     leaderless,
		"key":            keyOf,
		"judge":          judge,
		"nobody":         asNobody,
		"proc":           withOwnProc,
		"child":          inAChild,
		"timens":         inATimeNamespace,
		"hidepid":        withHiddenProcesses,
		"boot":           withAForeignBootID,
		"mixed":          withMixedTimeNamespaces,
		"same pid":       withTheSamePidOutside,
		"exec":           execs,
		"still":          still,
		"reuse":          reuse,
		"family":         family,
		"host":           withHostname,
		"judge and stay": judgeAndStay,
		"renamed":        renamed,
		"owner":          owner,
		"foster":         foster,
		"no proc":        withoutProc,
		"no keys":        func([]string) error { return noKeys() },
	}
}

func play(args []string) error { return parts()[args[0]](args[1:]) }

// self says who it is, and stays.
func self([]string) error {
	id, err := Self()
	if err != nil {
		return err
	}
	testkit.Ready(encode(id))
	return nil
}

// named is self under a name that looks like the fields of /proc/PID/stat.
func named(args []string) error {
	b := append([]byte(args[0]), 0)
	if err := prctlSetName(b); err != nil {
		return err
	}
	return self(nil)
}

// leaderless says who it is; then its main thread exits, while another one stays.
func leaderless([]string) error {
	id, err := Self()
	if err != nil {
		return err
	}
	go func() {
		for !leaderGone(os.Getpid()) {
			syscall.Select(0, nil, nil, nil, &syscall.Timeval{Usec: 1000})
		}
		testkit.Ready(encode(id))
		os.Exit(0)
	}()
	_, _, errno := syscall.Syscall(unix.SYS_EXIT, 0, 0, 0)
	return errno
}

// keyOf prints the start key of each process.
func keyOf(args []string) error {
	for _, arg := range args {
		pid, err := strconv.Atoi(arg)
		if err != nil {
			return err
		}
		key, err := newView().mint(pid)
		if err != nil {
			return err
		}
		fmt.Println(key)
	}
	return nil
}

// judge prints the verdict on each identity.
func judge(args []string) error {
	for _, arg := range args {
		fmt.Println(encode(Judge(decode[Identity](arg), true)))
	}
	return nil
}

func asNobody(args []string) error {
	if err := testkit.Become(testkit.Nobody); err != nil {
		return err
	}
	return play(args)
}

// withOwnProc mounts the /proc of its own pid namespace.
func withOwnProc(args []string) error {
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return err
	}
	return play(args)
}

// inAChild plays a part in a process of its own below this one.
func inAChild(args []string) error {
	cmd := testkit.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

// inATimeNamespace plays a part where the boot time is offset by SECONDS and NANOSECONDS.
func inATimeNamespace(args []string) error {
	if err := unix.Unshare(unix.CLONE_NEWTIME); err != nil {
		return err
	}
	offsets := fmt.Sprintf("boottime %s %s\n", args[0], args[1])
	if err := os.WriteFile("/proc/self/timens_offsets", []byte(offsets), 0); err != nil {
		return err
	}
	return inAChild(args[2:])
}

// withMixedTimeNamespaces asks for keys while the namespace of its children, whose offsets it would read, is not its own.
func withMixedTimeNamespaces([]string) error {
	if err := unix.Unshare(unix.CLONE_NEWTIME); err != nil {
		return err
	}
	if err := os.WriteFile("/proc/self/timens_offsets", []byte("boottime 1000 0\n"), 0); err != nil {
		return err
	}
	return noKeys()
}

// noKeys fails unless this process can neither make nor compare start keys.
func noKeys() error {
	var c testkit.Checks
	id, err := Self()
	c.That(err != nil && id.StartKey == "" && id.PID == os.Getpid() && id.Hostname != "", "self: %+v, %v", id, err)
	for _, key := range []string{keyA, "linux:1"} {
		hostname, _ := os.Hostname()
		v := Judge(Identity{PID: 1 << 22, StartKey: key, Hostname: hostname}, true)
		c.That(v.Word == Uncertain, "%s: %+v", key, v)
	}
	return c.Err()
}

func withHiddenProcesses(args []string) error {
	if err := unix.Mount("proc", "/proc", "proc", 0, "hidepid="+args[0]); err != nil {
		return err
	}
	return play(args[1:])
}

// withAForeignBootID covers the kernel's boot id with the file, as some containers do.
func withAForeignBootID(args []string) error {
	if err := unix.Mount(args[0], "/proc/sys/kernel/random/boot_id", "", unix.MS_BIND, ""); err != nil {
		return err
	}
	return play(args[1:])
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func decode[T any](text string) T {
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		panic(err)
	}
	return v
}

// leaderGone reports whether the thread-group leader has exited.
func leaderGone(pid int) bool {
	st, err := readStat(strconv.Itoa(pid))
	return err == nil && st.state == 'Z'
}

// isZombie reports whether the last thread has exited, and nobody has waited for the process.
func isZombie(pid int) bool {
	st, err := readStat(strconv.Itoa(pid))
	return err == nil && st.state == 'Z' && st.threads == 1
}

func prctlSetName(name []byte) error {
	_, _, errno := syscall.Syscall(unix.SYS_PRCTL, unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// begin starts a part that says who it is.
func begin(t *testing.T, cmd *exec.Cmd) (Identity, *testkit.Running) {
	t.Helper()
	r := testkit.Begin(t, cmd)
	return decode[Identity](r.Line), r
}

// verdicts are those of another process on the identities.
func verdicts(t *testing.T, cmd *exec.Cmd) []Verdict {
	t.Helper()
	var all []Verdict
	for line := range strings.Lines(testkit.Play(t, cmd)) {
		all = append(all, decode[Verdict](line))
	}
	return all
}

func wordIs(t *testing.T, v Verdict, want Word) {
	t.Helper()
	if v.Word != want {
		t.Errorf("%s, want %s: %s", v.Word, want, v.Reason)
	}
	aClause(t, v.Reason)
}
