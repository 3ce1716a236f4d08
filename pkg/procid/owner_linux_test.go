package procid

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

func TestOfIsWhatTheProcessSaysOfItself(t *testing.T) {
	for name, part := range map[string][]string{
		"a process":                {"self"},
		"a leader that has exited": {"leaderless"},
		"an odd name":              {"named", "a) R 1 2 3"},
	} {
		t.Run(name, func(t *testing.T) {
			id, child := begin(t, testkit.Command(part[0], part[1:]...))
			got, err := Of(id.PID)
			if err != nil || got != id {
				t.Errorf("%+v, %v, want %+v", got, err, id)
			}
			child.Kill()
			_, err = Of(id.PID)
			refusedAs(t, err, CodeOwnerPIDImplausible, id.PID)
		})
	}
	self, err := Self()
	check(t, err)
	if got, err := Of(os.Getpid()); err != nil || got != self {
		t.Errorf("%+v, %v, want %+v", got, err, self)
	}
}

func TestAZombieIsNoOwner(t *testing.T) {
	id, child := begin(t, testkit.Command("self"))
	check(t, child.Process.Signal(syscall.SIGKILL))
	until(t, func() bool { return isZombie(id.PID) })
	_, err := Of(id.PID)
	refusedAs(t, err, CodeOwnerPIDImplausible, id.PID)
}

func TestAThreadIsNoOwner(t *testing.T) {
	entries, err := os.ReadDir("/proc/self/task")
	check(t, err)
	threads := 0
	for _, e := range entries {
		tid, err := strconv.Atoi(e.Name())
		check(t, err)
		if tid == os.Getpid() {
			continue
		}
		threads++
		_, err = Of(tid)
		refusedAs(t, err, CodeOwnerPIDImplausible, tid)
	}
	if threads == 0 {
		t.Fatal("this process has only one thread")
	}
}

func TestTheFirstProcessOfTheSystemIsNoOwner(t *testing.T) {
	needInitialNamespace(t)
	_, err := Of(1)
	refusedAs(t, err, CodeOwnerPIDImplausible, 1)
}

// In a pid namespace of its own, pid 1 is a process like others: a container's program often is.
func TestTheFirstProcessOfANamespaceIsAnOwner(t *testing.T) {
	needInitialNamespace(t)
	testkit.Play(t, contained("owner", "1", ""))
	testkit.Play(t, contained("child", "owner", "1", ""))
}

func TestAHiddenProcessIsNoOwner(t *testing.T) {
	testkit.NeedRoot(t)
	id, _ := begin(t, testkit.Command("self"))
	for _, hidepid := range []string{"1", "2"} {
		cmd := testkit.Command("hidepid", hidepid, "nobody", "owner", strconv.Itoa(id.PID), CodeOwnerStartKeyUnreadable)
		testkit.Play(t, testkit.Isolated(cmd, syscall.CLONE_NEWNS))
	}
}

func TestWithAForeignProcNobodyIsAnOwner(t *testing.T) {
	testkit.NeedRoot(t)
	cmd := testkit.Command("owner", "1", CodeOwnerStartKeyUnreadable)
	testkit.Play(t, testkit.Isolated(cmd, syscall.CLONE_NEWPID))
}

func TestWithoutProcNobodyIsAnOwner(t *testing.T) {
	testkit.NeedRoot(t)
	cmd := testkit.Command("no proc", "owner", strconv.Itoa(os.Getpid()), CodeOwnerStartKeyUnreadable)
	testkit.Play(t, testkit.Isolated(cmd, syscall.CLONE_NEWNS))
}

func TestWithAnOffsetOfNanosecondsNobodyIsAnOwner(t *testing.T) {
	needTimeNamespaces(t)
	testkit.Play(t, testkit.Command("timens", "1000", "1", "owner", strconv.Itoa(os.Getpid()), CodeOwnerStartKeyUnreadable))
	testkit.Play(t, testkit.Command("timens", "1000", "0", "owner", strconv.Itoa(os.Getpid()), ""))
}

// A supervisor may record a process that runs in a namespace below its own.
func TestAnOwnerRecordedFromOutsideItsNamespace(t *testing.T) {
	needInitialNamespace(t)
	id, process := begin(t, contained("foster", "proc", "self"))
	wordIs(t, Judge(id, false), Live)
	other := id
	other.PID++
	wordIs(t, Judge(other, false), Dead)
	wordIs(t, Judge(inOtherNamespace(id), false), Dead)
	process.Kill()
	wordIs(t, Judge(id, false), Dead)
}

// owner fails unless Of answers about PID with that code, none for an owner.
func owner(args []string) error {
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	id, err := Of(pid)
	code := ""
	var e *OwnerError
	if errors.As(err, &e) {
		code = e.ErrorCode()
	} else if err != nil {
		return err
	}
	if code != args[1] || (code == "") != (id.StartKey != "") {
		return fmt.Errorf("of %d: %+v, %q: %v", pid, id, code, err)
	}
	return nil
}

// foster plays a part in a pid namespace below this one and says who that is, as seen from here.
func foster(args []string) error {
	cmd := testkit.Isolated(testkit.Command(args[0], args[1:]...), syscall.CLONE_NEWPID|syscall.CLONE_NEWNS)
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	defer in.Close()
	if err := cmd.Start(); err != nil {
		return err
	}
	id, err := Of(cmd.Process.Pid)
	if err != nil {
		return err
	}
	testkit.Ready(encode(id))
	return cmd.Process.Kill()
}

// withoutProc plays a part where nothing is mounted on /proc.
func withoutProc(args []string) error {
	cmd := testkit.Command(args[0], args[1:]...)
	if err := unix.Mount("none", "/proc", "tmpfs", 0, ""); err != nil {
		return err
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
