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

// The rows of the verdict table, by their own words, each with a real process. Rows whose circumstances are rarer have
// tests of their own: hidden processes, weak keys, time namespaces.

func TestRowsOfOneNamespace(t *testing.T) {
	living, _ := begin(t, testkit.Command("self"))
	leaderless, _ := begin(t, testkit.Command("leaderless"))
	gone, child := begin(t, testkit.Command("self"))
	child.Kill()
	zombie, child := begin(t, testkit.Command("self"))
	check(t, child.Process.Signal(syscall.SIGKILL))
	until(t, func() bool { return isZombie(zombie.PID) })

	later := func(k *Key) { k.Ticks++ }
	rebooted := func(k *Key) { k.Boot = bootA }
	weak := func(k *Key) { k.Boot = weakBoot }
	legacy := func(id Identity) Identity {
		id.StartKey = fmt.Sprintf("linux:%d", ParseKey(id.StartKey).Ticks)
		return id
	}
	text := func(id Identity, key string) Identity { id.StartKey = key; return id }
	elsewhere := func(id Identity) Identity { id.Hostname += "-other"; return id }

	for _, c := range []struct {
		row    string
		id     Identity
		local  Word // on a local filesystem
		shared Word // on one that other machines may mount
	}{
		{"not recognised", text(living, "pid:1"), Uncertain, Uncertain},
		{"schemes differ", text(living, darwinKey), Uncertain, Uncertain},
		{"schemes differ", text(gone, freebsdKey), Uncertain, Uncertain},
		{"same boot, same pid namespace: key equal", living, Live, Live},
		{"same boot, same pid namespace: key equal, the hostname has changed", elsewhere(living), Live, Live},
		{"same boot, same pid namespace: a zombie whose thread count is 1", zombie, Dead, Dead},
		{"same boot, same pid namespace: a zombie whose thread count is more", leaderless, Live, Live},
		{"same boot, same pid namespace: ESRCH", gone, Dead, Dead},
		{"same boot, same pid namespace: ESRCH, the hostname has changed", elsewhere(gone), Dead, Dead},
		{"same boot, same pid namespace: ticks differ", changed(living, later), Dead, Dead},
		{"another boot", changed(living, rebooted), Dead, Uncertain},
		{"another boot: the hostname differs too", elsewhere(changed(living, rebooted)), Dead, OtherHost},
		{"weak key: same pid namespace and key equal", changed(living, weak), Live, Live},
		{"weak key otherwise: ESRCH", changed(gone, weak), Uncertain, Uncertain},
		{"weak key otherwise: a zombie", changed(zombie, weak), Uncertain, Uncertain},
		{"weak key otherwise: ticks differ", changed(changed(living, weak), later), Uncertain, Uncertain},
		{"legacy, other hostname", elsewhere(legacy(living)), OtherHost, OtherHost},
		{"legacy, other hostname, ESRCH", elsewhere(legacy(gone)), OtherHost, OtherHost},
		{"legacy, same hostname: equal", legacy(living), Live, Live},
		{"legacy, same hostname: ESRCH", legacy(gone), Dead, Dead},
		{"legacy, same hostname: ticks differ", legacy(changed(living, later)), Dead, Dead},
		{"legacy, same hostname: a zombie", legacy(zombie), Dead, Dead},
		{"legacy ps: texts that differ", text(living, "ps:Thu Jan  1 00:00:00 1970"), Uncertain, Uncertain},
		{"legacy ps: texts, ESRCH", text(gone, "ps:Thu Jan  1 00:00:00 1970"), Uncertain, Uncertain},
	} {
		t.Run(c.row, func(t *testing.T) {
			wordIs(t, Judge(c.id, true), c.local)
			wordIs(t, Judge(c.id, false), c.shared)
		})
	}
}

// changed is an identity with another key.
func changed(id Identity, change func(*Key)) Identity {
	key := ParseKey(id.StartKey)
	change(&key)
	id.StartKey = key.String()
	return id
}

// A pid that another process really has now, not one that is only recorded wrongly.
func TestRowTicksDifferWhereThePidWasReused(t *testing.T) {
	testkit.NeedRoot(t)
	testkit.Need(t, unix.Access("/proc/sys/kernel/ns_last_pid", unix.W_OK) == nil, "a kernel with ns_last_pid")
	testkit.Play(t, contained("reuse"))
}

// reuse makes the kernel give the pid of a process that has ended to the next one.
func reuse([]string) error {
	first := exec.Command("sleep", "60")
	if err := first.Start(); err != nil {
		return err
	}
	id, err := Of(first.Process.Pid)
	if err != nil {
		return err
	}
	_ = first.Process.Kill()
	_ = first.Wait()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond) // two of the ticks that starts are counted in
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(id.PID-1)), 0); err != nil {
			return err
		}
		next := exec.Command("sleep", "60")
		if err := next.Start(); err != nil {
			return err
		}
		v := Judge(id, false)
		_ = next.Process.Kill()
		_ = next.Wait()
		if next.Process.Pid != id.PID {
			continue
		}
		if v.Word != Dead || !strings.Contains(v.Reason, "reused") {
			return fmt.Errorf("%+v of %+v", v, id)
		}
		return nil
	}
	return fmt.Errorf("pid %d was not given out again", id.PID)
}

// hosted plays a part in a pid namespace with a hostname of its own.
func hosted(name string, part ...string) *exec.Cmd {
	cmd := testkit.Command("proc", append([]string{"host", name}, part...)...)
	return testkit.Isolated(cmd, syscall.CLONE_NEWPID|syscall.CLONE_NEWNS|syscall.CLONE_NEWUTS)
}

func TestRowAnotherPidNamespace(t *testing.T) {
	needInitialNamespace(t)
	// The namespace decides, not the hostname, which containers may share or have to themselves.
	for what, names := range map[string][2]string{"equal hostnames": {"box", "box"}, "different hostnames": {"box", "crate"}} {
		t.Run("siblings, "+what, func(t *testing.T) {
			id, process := begin(t, hosted(names[0], "self"))
			if id.Hostname != names[0] {
				t.Fatalf("%+v", id)
			}
			// A namespace that ends gives its number to the next one, and then the verdict is dead; an open one keeps it.
			namespace, err := os.Open(fmt.Sprintf("/proc/%d/ns/pid", process.Process.Pid))
			if err != nil {
				t.Fatal(err)
			}
			defer namespace.Close()
			from := func() Verdict { return verdicts(t, hosted(names[1], "judge", encode(id)))[0] }
			wordIs(t, Judge(id, false), Live)
			wordIs(t, from(), Uncertain)
			process.Kill()
			wordIs(t, Judge(id, false), Dead)
			wordIs(t, from(), Uncertain)
		})
		t.Run("nested, "+what, func(t *testing.T) {
			id, process := begin(t, hosted(names[0], "family", names[1]))
			if id.Hostname != names[1] {
				t.Fatalf("%+v", id)
			}
			wordIs(t, Judge(id, false), Live)
			wordIs(t, Judge(changed(id, func(k *Key) { k.Ticks++ }), false), Dead)
			process.Kill()
			wordIs(t, Judge(id, false), Dead)
		})
	}
}

// family is a process in a namespace that has another one in it; neither can judge the other. It says who the inner one is.
func family(args []string) error {
	var c testkit.Checks
	us, err := Self()
	if err != nil {
		return err
	}
	inner := hosted(args[0], "judge and stay", encode(us))
	in, err := inner.StdinPipe()
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := inner.StdoutPipe()
	if err != nil {
		return err
	}
	inner.Stderr = os.Stderr
	if err := inner.Start(); err != nil {
		return err
	}
	buf := make([]byte, 4096)
	n, err := out.Read(buf)
	if err != nil {
		return err
	}
	id := decode[Identity](string(buf[:n]))
	v := Judge(id, true)
	c.That(v.Word == Uncertain, "the outer one judges %+v", v)
	if err := c.Err(); err != nil {
		return err
	}
	testkit.Ready(encode(id))
	return nil
}

// judgeAndStay fails unless it is uncertain about the identity; then it is self.
func judgeAndStay(args []string) error {
	if v := Judge(decode[Identity](args[0]), true); v.Word != Uncertain {
		return fmt.Errorf("the inner one judges %+v", v)
	}
	return self(nil)
}

// withHostname plays a part on a host of that name.
func withHostname(args []string) error {
	if err := unix.Sethostname([]byte(args[0])); err != nil {
		return err
	}
	return play(args[1:])
}

// A program that replaces itself stays the same process, also when a thread of it does so that is not the first: the
// trampoline of a wrapper records an owner before that one's program runs.
func TestTheKeyOutlivesAnExec(t *testing.T) {
	for _, thread := range []string{"first", "other"} {
		id, child := begin(t, testkit.Command("exec", thread))
		if id.PID != child.Process.Pid {
			t.Errorf("%+v is not pid %d", id, child.Process.Pid)
		}
		wordIs(t, Judge(id, false), Live)
	}
}

// execs replaces its program, from its first thread or from another one, by one that must be who it was.
func execs(args []string) error {
	us, err := Self()
	if err != nil {
		return err
	}
	next := testkit.Environment(testkit.Command("still", encode(us)))
	replace := func() error { return syscall.Exec(next.Path, next.Args, next.Env) }
	if args[0] == "first" {
		return replace()
	}
	// The main goroutine of a part keeps the first thread to itself.
	failed := make(chan error)
	go func() { failed <- replace() }()
	return <-failed
}

func still(args []string) error {
	us, err := Self()
	if err != nil {
		return err
	}
	if was := decode[Identity](args[0]); was != us {
		return fmt.Errorf("it was %+v and is %+v", was, us)
	}
	return self(nil)
}
