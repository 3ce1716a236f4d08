package procid

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

// needInitialNamespace is what a verdict on another pid namespace's processes takes.
func needInitialNamespace(t *testing.T) {
	t.Helper()
	testkit.NeedRoot(t)
	ns, err := pidNamespace("self")
	testkit.Need(t, err == nil && ns == initialPIDNamespace, "the initial pid namespace")
}

// contained plays a part in a pid namespace of its own with its own /proc.
func contained(part ...string) *exec.Cmd {
	return testkit.Isolated(testkit.Command("proc", part...), syscall.CLONE_NEWPID|syscall.CLONE_NEWNS)
}

func TestAProcessOfAnotherPidNamespaceIsFound(t *testing.T) {
	needInitialNamespace(t)
	for name, part := range map[string][]string{
		"its first process":                    {"self"},
		"a later process":                      {"child", "self"},
		"one whose leader has exited":          {"child", "leaderless"},
		"the first, after its leader's exit":   {"leaderless"},
		"one with a time namespace of its own": {"timens", "1000", "0", "self"},
	} {
		t.Run(name, func(t *testing.T) {
			id, process := begin(t, contained(part...))
			key := ParseKey(id.StartKey)
			if key.NS == initialPIDNamespace || key.Weak() {
				t.Fatalf("it is %+v", id)
			}
			wordIs(t, Judge(id, false), Live)
			// Its number, and its start, mean nothing alone.
			for _, change := range []func(*Identity, *Key){
				func(id *Identity, _ *Key) { id.PID += 1000 },
				func(_ *Identity, k *Key) { k.Ticks++ },
				func(_ *Identity, k *Key) { k.NS++ },
			} {
				other, k := id, key
				change(&other, &k)
				other.StartKey = k.String()
				wordIs(t, Judge(other, false), Dead)
			}
			process.Kill()
			wordIs(t, Judge(id, false), Dead)
		})
	}
}

func TestAZombieOfAnotherPidNamespaceIsDead(t *testing.T) {
	needInitialNamespace(t)
	id, process := begin(t, contained("self"))
	check(t, process.Process.Signal(syscall.SIGKILL))
	until(t, func() bool { return isZombie(process.Process.Pid) })
	wordIs(t, Judge(id, false), Dead)
}

func TestTwoPidNamespacesAreToldApart(t *testing.T) {
	needInitialNamespace(t)
	first, one := begin(t, contained("self"))
	second, _ := begin(t, contained("self"))
	if first.PID != second.PID || first.StartKey == second.StartKey {
		t.Fatalf("%+v and %+v", first, second)
	}
	// A third one sees into none of them.
	got := verdicts(t, contained("judge", encode(first), encode(second)))
	wordIs(t, got[0], Uncertain)
	wordIs(t, got[1], Uncertain)
	one.Kill()
	wordIs(t, Judge(first, false), Dead)
	wordIs(t, Judge(second, false), Live)
}

func TestFromInsideAPidNamespaceTheOutsideIsUncertain(t *testing.T) {
	needInitialNamespace(t)
	id, process := begin(t, testkit.Command("self"))
	wordIs(t, verdicts(t, contained("judge", encode(id)))[0], Uncertain)
	process.Kill()
	wordIs(t, verdicts(t, contained("judge", encode(id)))[0], Uncertain)
}

// An ordinary user can compare with processes it may not look into only as long as their starts differ: one that started
// in the same hundredth of a second as the one on record leaves it uncertain.
func TestAnOrdinaryUserIsNotSureOfAnotherUsersNamespace(t *testing.T) {
	needInitialNamespace(t)
	until(t, func() bool {
		id, process := begin(t, contained("self"))
		wordIs(t, verdicts(t, testkit.Command("nobody", "judge", encode(id)))[0], Uncertain)
		process.Kill()
		v := verdicts(t, testkit.Command("nobody", "judge", encode(id)))[0]
		if v.Word != Dead {
			wordIs(t, v, Uncertain)
		}
		return v.Word == Dead
	})
}

// With the /proc of another pid namespace every number in it means another process.
func TestWithAForeignProcThereAreNoKeys(t *testing.T) {
	testkit.NeedRoot(t)
	testkit.Play(t, testkit.Isolated(testkit.Command("no keys"), syscall.CLONE_NEWPID))
	testkit.Play(t, testkit.Isolated(testkit.Command("child", "no keys"), syscall.CLONE_NEWPID))
}

func TestWithAForeignProcThatHappensToFitNothingIsCompared(t *testing.T) {
	testkit.NeedRoot(t)
	testkit.Need(t, unix.Access("/proc/sys/kernel/ns_last_pid", unix.W_OK) == nil, "a kernel with ns_last_pid")
	testkit.Play(t, testkit.Isolated(testkit.Command("same pid"), syscall.CLONE_NEWPID))
}

// withTheSamePidOutside plays "judge" in a process whose number in its own pid namespace happens to be its number in the
// outer one too, so that the outer /proc, which is the one it sees, has a /proc/self that looks right.
func withTheSamePidOutside([]string) error {
	hostname, _ := os.Hostname()
	// Pid 1 is this process; in the /proc that is seen it is another.
	us := encode(Identity{PID: 1, StartKey: "linux:1", Hostname: hostname})
	judge := testkit.Command("judge", us)
	outer := 0
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(outer)), 0); err != nil {
			return err
		}
		const when = `read outer rest </proc/self/stat; echo $outer; if [ $outer = $$ ]; then exec "$@"; fi`
		cmd := exec.Command("sh", append([]string{"-c", when, "sh", judge.Path}, judge.Args[1:]...)...)
		cmd.Env = judge.Env
		out, err := cmd.Output()
		if err != nil {
			return err
		}
		number, rest, _ := strings.Cut(string(out), "\n")
		if outer, err = strconv.Atoi(number); err != nil {
			return err
		}
		if rest != "" {
			if v := decode[Verdict](rest); v.Word != Uncertain {
				return fmt.Errorf("%+v", v)
			}
			return nil
		}
	}
	return fmt.Errorf("no process had the same number in both namespaces")
}

// Starts are counted from the boot as a time namespace shows it, and recorded as the boot really was.
func TestTheKeyIsTheSameInEveryTimeNamespace(t *testing.T) {
	needTimeNamespaces(t)
	ours, err := Self()
	check(t, err)
	for _, seconds := range []string{"1000", "100000000", "-1", "0"} {
		inside := func(part ...string) *exec.Cmd {
			return testkit.Command("timens", append([]string{seconds, "0"}, part...)...)
		}
		id, process := begin(t, inside("self"))
		pid := strconv.Itoa(id.PID)
		outside, err := newView().mint(id.PID)
		check(t, err)
		if outside != id.StartKey {
			t.Errorf("offset %s: the key is %s inside and %s outside", seconds, id.StartKey, outside)
		}
		if key := strings.TrimSpace(testkit.Play(t, inside("key", pid))); key != id.StartKey {
			t.Errorf("offset %s: the key is %s, and %s to a neighbour", seconds, id.StartKey, key)
		}
		wordIs(t, Judge(id, false), Live)
		got := verdicts(t, inside("judge", encode(ours), encode(id)))
		wordIs(t, got[0], Live)
		wordIs(t, got[1], Live)
		process.Kill()
		wordIs(t, verdicts(t, inside("judge", encode(id)))[0], Dead)
	}
}

// A process from before the beginning of a time namespace has no start there that could be compared.
func TestAProcessOlderThanTheTimeNamespaceIsNotTakenForAnother(t *testing.T) {
	needTimeNamespaces(t)
	first, err := readStat("1")
	check(t, err)
	hostname, _ := os.Hostname()
	ours, err := Self()
	check(t, err)
	key := ParseKey(ours.StartKey)
	key.Ticks = first.ticks
	id := Identity{PID: 1, StartKey: key.String(), Hostname: hostname}
	wordIs(t, Judge(id, false), Live)
	var now unix.Timespec
	check(t, unix.ClockGettime(unix.CLOCK_BOOTTIME, &now))
	// The namespace begins a second after the process did, or just now.
	offset := -min(int64(first.ticks)/ticksPerSecond+1, now.Sec)
	cmd := testkit.Command("timens", strconv.FormatInt(offset, 10), "0", "judge", encode(id))
	wordIs(t, verdicts(t, cmd)[0], Uncertain)
}

func TestAnOffsetOfNanosecondsMakesNoKeys(t *testing.T) {
	needTimeNamespaces(t)
	testkit.Play(t, testkit.Command("timens", "1000", "1", "no keys"))
	testkit.Play(t, testkit.Command("timens", "1000", "999999999", "no keys"))
}

func TestOffsetsOfAnotherTimeNamespaceMakeNoKeys(t *testing.T) {
	needTimeNamespaces(t)
	testkit.Play(t, testkit.Command("mixed"))
}

func needTimeNamespaces(t *testing.T) {
	t.Helper()
	testkit.NeedRoot(t)
	_, err := os.Stat("/proc/self/ns/time")
	testkit.Need(t, err == nil, "a kernel with time namespaces")
}
