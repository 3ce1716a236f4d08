package procid

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

func TestSelfIsLive(t *testing.T) {
	id, err := Self()
	check(t, err)
	key := ParseKey(id.StartKey)
	if key.Scheme != SchemeLinux || key.Weak() || key.String() != id.StartKey || id.PID != os.Getpid() {
		t.Errorf("%+v: %+v", id, key)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	check(t, err)
	link, err := os.Readlink("/proc/self/ns/pid")
	check(t, err)
	if key.Boot+"\n" != string(boot) || fmt.Sprintf("pid:[%d]", key.NS) != link {
		t.Errorf("%+v, want boot %s and %s", key, boot, link)
	}
	if again, err := Self(); err != nil || again != id {
		t.Errorf("%+v, then %+v, %v", id, again, err)
	}
	wordIs(t, Judge(id, true), Live)
	wordIs(t, Judge(id, false), Live)
	id.Hostname = "renamed-meanwhile"
	wordIs(t, Judge(id, false), Live)
}

func TestAChildIsLiveThenAZombieThenGone(t *testing.T) {
	id, child := begin(t, testkit.Command("self"))
	if id.PID != child.Process.Pid {
		t.Fatalf("%+v is not pid %d", id, child.Process.Pid)
	}
	wordIs(t, Judge(id, false), Live)
	check(t, child.Process.Signal(syscall.SIGSTOP))
	wordIs(t, Judge(id, false), Live)

	check(t, child.Process.Signal(syscall.SIGKILL))
	until(t, func() bool { return isZombie(id.PID) })
	if err := unix.Kill(id.PID, 0); err != nil {
		t.Errorf("a zombie answers kill with %v", err)
	}
	v := Judge(id, false)
	wordIs(t, v, Dead)
	if !strings.Contains(v.Reason, "zombie") {
		t.Error(v.Reason)
	}

	child.Kill()
	v = Judge(id, false)
	wordIs(t, v, Dead)
	if want := fmt.Sprintf("no process has pid %d", id.PID); v.Reason != want {
		t.Errorf("%q, want %q", v.Reason, want)
	}
}

// A thread-group leader that has exited looks like a zombie for as long as another thread of it runs.
func TestALeaderThatExitedBeforeItsThreadsIsLive(t *testing.T) {
	id, child := begin(t, testkit.Command("leaderless"))
	if !leaderGone(id.PID) {
		t.Fatal("its leader has not exited")
	}
	wordIs(t, Judge(id, false), Live)
	child.End(t)
	wordIs(t, Judge(id, false), Dead)
}

func TestAnotherStartIsAnotherProcess(t *testing.T) {
	id, err := Self()
	check(t, err)
	key := ParseKey(id.StartKey)
	for _, change := range []uint64{1, 100, ^uint64(0)} {
		other := key
		other.Ticks += change
		id.StartKey = other.String()
		v := Judge(id, false)
		wordIs(t, v, Dead)
		if !strings.Contains(v.Reason, "reused") {
			t.Error(v.Reason)
		}
	}
	legacy := Identity{PID: id.PID, StartKey: fmt.Sprintf("linux:%d", key.Ticks), Hostname: id.Hostname}
	wordIs(t, Judge(legacy, false), Live)
	legacy.StartKey = fmt.Sprintf("linux:%d", key.Ticks+1)
	wordIs(t, Judge(legacy, false), Dead)
	legacy.Hostname += "-other"
	wordIs(t, Judge(legacy, true), OtherHost)
}

// A pid of 0 or less would ask about process groups, one of more than 32 bits about another process; no owner has one.
func TestImpossiblePidsAreUncertain(t *testing.T) {
	id, err := Self()
	check(t, err)
	for _, pid := range []int{0, -1, -id.PID, 1<<32 + id.PID, 1 << 32, 1<<32 + 1<<30} {
		wordIs(t, Judge(Identity{PID: pid, StartKey: id.StartKey, Hostname: id.Hostname}, true), Uncertain)
	}
	wordIs(t, Judge(Identity{PID: 1 << 30, StartKey: id.StartKey, Hostname: id.Hostname}, true), Dead)
}

func TestAnotherBootIsOverOnALocalFilesystem(t *testing.T) {
	id, err := Self()
	check(t, err)
	key := ParseKey(id.StartKey)
	key.Boot = bootA
	id.StartKey = key.String()
	wordIs(t, Judge(id, true), Dead)
	wordIs(t, Judge(id, false), Uncertain)
	id.Hostname += "-other"
	wordIs(t, Judge(id, false), OtherHost)
}

// case B06: texts that depend on locale and zone make bad keys.
func TestKeysDoNotDependOnLocaleOrZone(t *testing.T) {
	id, _ := begin(t, testkit.Command("self"))
	for _, env := range [][]string{
		{"LC_ALL=C", "TZ=UTC"}, {"LC_ALL=en_GB.UTF-8", "TZ=Asia/Kolkata"}, {"LC_ALL=ar_EG.UTF-8", "LANG=ar_EG", "TZ=Pacific/Apia"}, nil,
	} {
		cmd := testkit.Environment(testkit.Command("key", strconv.Itoa(id.PID)), env...)
		if key := strings.TrimSpace(testkit.Play(t, cmd)); key != id.StartKey {
			t.Errorf("under %q the key is %s, want %s", env, key, id.StartKey)
		}
		wordIs(t, verdicts(t, testkit.Environment(testkit.Command("judge", encode(id)), env...))[0], Live)
	}
}

// The command name stands in /proc/PID/stat in parentheses and may hold anything.
func TestACommandNameCannotForgeTheStart(t *testing.T) {
	for _, name := range []string{"a) b (c", "a) R 1 2 3", ") Z 1 1 1 1 (", "x\ny", "\n", "sixteen bytes ) ", "(((", ")))", ") 0 0 0 0 0 0", " "} {
		id, child := begin(t, testkit.Command("named", name))
		wordIs(t, Judge(id, false), Live)
		child.Kill()
		wordIs(t, Judge(id, false), Dead)
	}
}

// An ordinary user gets EPERM when it asks about a process of root's: that is a process.
func TestEPERMIsNotDeath(t *testing.T) {
	testkit.NeedRoot(t)
	id, child := begin(t, testkit.Command("self"))
	reused := id
	key := ParseKey(id.StartKey)
	key.Ticks++
	reused.StartKey = key.String()
	got := verdicts(t, testkit.Command("nobody", "judge", encode(id), encode(reused)))
	wordIs(t, got[0], Live)
	wordIs(t, got[1], Dead)
	child.Kill()
	wordIs(t, verdicts(t, testkit.Command("nobody", "judge", encode(id)))[0], Dead)
}

// Where /proc hides other users' processes, their start cannot be read; only ESRCH proves them gone.
func TestHiddenProcessesAreUncertain(t *testing.T) {
	testkit.NeedRoot(t)
	for _, hidepid := range []string{"1", "2"} {
		id, child := begin(t, testkit.Command("self"))
		judge := func() []Verdict {
			cmd := testkit.Command("hidepid", hidepid, "nobody", "judge", encode(id), encode(inOtherNamespace(id)))
			return verdicts(t, testkit.Isolated(cmd, syscall.CLONE_NEWNS))
		}
		got := judge()
		wordIs(t, got[0], Uncertain)
		wordIs(t, got[1], Uncertain)
		child.Kill()
		got = judge()
		wordIs(t, got[0], Dead)
		wordIs(t, got[1], Uncertain)
		cmd := testkit.Command("hidepid", hidepid, "nobody", "self")
		own, _ := begin(t, testkit.Isolated(cmd, syscall.CLONE_NEWNS))
		wordIs(t, Judge(own, false), Live)
	}
}

// inOtherNamespace is an identity as a process of another pid namespace would record it.
func inOtherNamespace(id Identity) Identity {
	key := ParseKey(id.StartKey)
	key.NS++
	id.StartKey = key.String()
	return id
}

// Containers cover the boot id. What they write is told from the kernel's own file by its filesystem, and makes a key
// that proves life and never death.
func TestACoveredBootIDMakesAWeakKey(t *testing.T) {
	testkit.NeedRoot(t)
	file := filepath.Join(t.TempDir(), "boot_id")
	for name, content := range map[string]string{"a UUID": bootA + "\n", "nothing": "", "a word": "container\n"} {
		t.Run(name, func(t *testing.T) {
			check(t, os.WriteFile(file, []byte(content), 0o644))
			isolated := func(part ...string) *exec.Cmd {
				cmd := testkit.Command("boot", append([]string{file}, part...)...)
				return testkit.Isolated(cmd, syscall.CLONE_NEWNS)
			}
			id, child := begin(t, isolated("self"))
			key := ParseKey(id.StartKey)
			if key.Scheme != SchemeLinux || !key.Weak() {
				t.Errorf("the key is %s", id.StartKey)
			}
			ours, err := Self()
			check(t, err)
			got := verdicts(t, isolated("judge", encode(id), encode(ours)))
			wordIs(t, got[0], Live)
			wordIs(t, got[1], Uncertain)
			child.Kill()
			wordIs(t, verdicts(t, isolated("judge", encode(id)))[0], Uncertain)
			wordIs(t, Judge(id, true), Uncertain)
		})
	}
}

func TestABootIDCoveredFromProcMakesAWeakKey(t *testing.T) {
	testkit.NeedRoot(t)
	// From the same filesystem as the kernel's. The second is a UUID, another one each time it is read.
	for _, file := range []string{"/proc/sys/kernel/ostype", "/proc/sys/kernel/random/uuid"} {
		cmd := testkit.Command("boot", file, "self")
		id, _ := begin(t, testkit.Isolated(cmd, syscall.CLONE_NEWNS))
		if key := ParseKey(id.StartKey); !key.Weak() {
			t.Errorf("with %s the key is %s", file, id.StartKey)
		}
	}
}

func TestParseStat(t *testing.T) {
	line := func(comm, state, threads, start string) string {
		return "7 (" + comm + ") " + state + " 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 " + threads + " 0 " + start + " 0 0\n"
	}
	for _, comm := range []string{"x", "", "a) b (c", ")", "(", ") Z 9 9 9", "a\nb", "a\tb ) "} {
		st, err := parseStat(line(comm, "S", "3", "12345"))
		if err != nil || st != (stat{ticks: 12345, state: 'S', threads: 3}) {
			t.Errorf("%q: %+v, %v", comm, st, err)
		}
	}
	for _, c := range []struct {
		state, threads string
		zombie         bool
	}{{"Z", "1", true}, {"X", "1", true}, {"X", "0", true}, {"Z", "2", false}, {"S", "1", false}, {"T", "1", false}, {"D", "1", false}} {
		if st, err := parseStat(line("x", c.state, c.threads, "1")); err != nil || st.zombie() != c.zombie {
			t.Errorf("%+v: %+v, %v", c, st, err)
		}
	}
	for _, text := range []string{
		"", "7", "7 (x)", "7 (x) S", "7 (x) S 1 2 3", line("x", "SS", "1", "1"), line("x", "S", "x", "1"), line("x", "S", "1", "-1"),
		line("x", "S", "1", "x"), line("x", "S", "1", "99999999999999999999"), strings.Repeat(") ", 40),
		line("x", "S", "1", "1844674397396"), // a start before the beginning of the reader's time namespace
	} {
		if st, err := parseStat(text); err == nil {
			t.Errorf("%q: %+v", text, st)
		}
	}
}

func TestParseOffsets(t *testing.T) {
	for text, want := range map[string]int64{
		"monotonic           0         0\nboottime            0         0\n": 0,
		"monotonic 5 7\nboottime 1000 0\n":                                   100_000,
		"boottime -3 0":                                                      -300,
	} {
		if got, err := parseOffsets(text); err != nil || int64(got) != want {
			t.Errorf("%q: %d, %v", text, int64(got), err)
		}
	}
	for _, text := range []string{"", "monotonic 0 0\n", "boottime 1000 1\n", "boottime 1000\n", "boottime x 0\n", "boottime 0 500000000\n"} {
		if got, err := parseOffsets(text); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
}

// until waits for a state that another process is about to reach.
func until(t *testing.T, reached func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !reached(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it was not reached")
		}
	}
}

// FuzzParseStat: no command name changes what is read after it, and no text makes a panic.
func FuzzParseStat(f *testing.F) {
	f.Add("a) b (c", uint64(5))
	f.Add(") Z 1 1 1", uint64(1<<40))
	f.Fuzz(func(t *testing.T, comm string, ticks uint64) {
		_, _ = parseStat(comm)
		text := fmt.Sprintf("7 (%s) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 %d 0 0\n", comm, ticks)
		st, err := parseStat(text)
		if (err == nil) != (ticks <= maxTicks) || err == nil && st != (stat{ticks: ticks, state: 'S', threads: 3}) {
			t.Errorf("%q: %+v, %v", text, st, err)
		}
	})
}
