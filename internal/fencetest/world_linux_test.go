package fencetest

import (
	"fmt"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

// needWorlds is what it takes to have processes in other namespaces, and to see them all.
func needWorlds(t *testing.T) {
	t.Helper()
	testkit.NeedRoot(t)
	for _, tool := range []string{"unshare", "nsenter", "setpriv", "mount", "hostname"} {
		testkit.NeedTool(t, tool)
	}
	var st unix.Stat_t
	err := unix.Stat("/proc/self/ns/pid", &st)
	testkit.Need(t, err == nil && st.Ino == 0xeffffffc, "the initial pid namespace")
}

// world is a pid namespace with a /proc of its own, as a container has it.
type world struct {
	s    *scene
	init int // the first process, as the test sees it
}

// world makes one. A hostname other than "" is its own.
func (s *scene) world(hostname string) world {
	s.Helper()
	script := "mount -t proc proc /proc && "
	var flags uintptr = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS
	if hostname != "" {
		script += "hostname " + hostname + " && "
		flags |= syscall.CLONE_NEWUTS
	}
	r := testkit.Begin(s.T, testkit.Isolated(s.command("sh", "-c", script+"echo ready && exec cat"), flags))
	return world{s: s, init: r.Process.Pid}
}

// inside is from within the world.
func (w world) inside() side {
	return side{"nsenter", "-t", strconv.Itoa(w.init), "-p", "-m", "-u", "--"}
}

// nested is from a pid namespace of its own within the world.
func (w world) nested() side { return w.inside().words("unshare", "-p", "-f", "--mount-proc", "--") }

// kill sends a signal to a process by its number in the world.
func (w world) kill(pid int, sig unix.Signal) {
	w.s.Helper()
	out, err := exec.Command("nsenter", w.inside().words("sh", "-c", fmt.Sprintf("kill -%d %d", int(sig), pid))[1:]...).CombinedOutput()
	if err != nil {
		w.s.Fatalf("%v: %s", err, out)
	}
}

// apart is from a pid namespace that is made for the purpose.
var apart = side{"unshare", "-p", "-f", "--mount-proc", "--"}

// otherName is from a host that has been renamed.
var otherName = side{"unshare", "-u", "--", "sh", "-c", `hostname renamed; exec "$@"`, "sh"}

// timeApart is from a time namespace that many seconds off.
func timeApart(seconds string) side {
	return side{"unshare", "--time", "--boottime", seconds, "--fork", "--"}
}

// hidden is from where other processes are hidden, and may not be looked into.
func hidden(hidepid string) side {
	const script = `mount -t proc -o hidepid=$0 proc /proc && exec setpriv --regid 65534 --clear-groups --bounding-set=-all --inh-caps=-all "$@"`
	return side{"unshare", "-m", "--", "sh", "-c", script, hidepid}
}

// bootCovered is from where the kernel's boot id is covered by another one, as some containers have it.
func (s *scene) bootCovered() side {
	const script = `echo 6f1d8e4a-4a8b-4bd1-9a57-0d0d5c0c7d3e >"$OUT/boot" && mount --bind "$OUT/boot" /proc/sys/kernel/random/boot_id && exec "$@"`
	return side{"unshare", "-m", "--", "sh", "-c", script, "sh"}
}

// owner starts a process there that has been admitted, and stays until it is ended.
func (s *scene) owner(from side) *testkit.Running {
	s.Helper()
	const script = `fencectl admit --dir "$D" --owner-pid $$ --ticket "$OUT/owner.ticket" --format json >"$OUT/admitted" && echo ready && exec cat`
	return testkit.Begin(s.T, s.command(from.words("sh", "-c", script)...))
}
