package claim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
	"holdfast/pkg/regfile"
)

func TestEnterLeavesEvidenceAndLeaveLeavesNothing(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	d := open(t, t.TempDir())
	who := me("acquire")
	h := enter(t, d, who)
	st, err := d.Lstat(name)
	check(t, err)
	if st.Kind != regfile.Regular || st.Perm() != 0o600 || st.UID != uint32(os.Geteuid()) {
		t.Errorf("%+v", st)
	}
	want := fmt.Sprintf(`{"token":%q,"tool":"test","op":"acquire","pid":%d,"startKey":%q,"hostname":%q,"enteredAt":"TIME","dev":%d,"kernelLock":true}`,
		who.Token, os.Getpid(), who.Self.StartKey, who.Self.Hostname, st.Dev) + "\n"
	got := content(t, d)
	at := regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`).FindString(got)
	if strings.Replace(got, at, "TIME", 1) != want {
		t.Errorf("%s, want %s", got, want)
	}
	if when, err := time.Parse(time.RFC3339, at); err != nil || time.Since(when) > time.Minute || time.Until(when) > time.Minute {
		t.Errorf("entered at %q, %v", at, err)
	}
	if !h.Holds() {
		t.Error("it does not hold")
	}
	check(t, h.Leave())
	empty(t, d)
	if h.Holds() {
		t.Error("it holds after it left")
	}
	check(t, enter(t, d, me("again")).Leave())
}

// A host's name is whatever the system says; it must not keep the evidence from being read.
func TestEvidenceOfAnyNameCanBeRead(t *testing.T) {
	d := open(t, t.TempDir())
	who := me("a\nb\"\u2028")
	who.Self.Hostname = "h\xffost"
	h := enter(t, d, who)
	defer h.Leave()
	if in := state(t, d, HeldNow); in.Evidence == nil || in.Token != who.Token || in.Evidence.Op != who.Op {
		t.Errorf("%+v", in)
	}
	var plain map[string]any
	check(t, json.Unmarshal([]byte(content(t, d)), &plain))
}

func TestATakenClaimIsWaitedForAndNamed(t *testing.T) {
	d := open(t, t.TempDir())
	who := me("first")
	first := enter(t, d, who)
	before := content(t, d)
	for _, bound := range []time.Duration{0, 60 * time.Millisecond} {
		_, err := Enter(context.Background(), d, name, me("second"), bound)
		var late *TimeoutError
		if !errors.As(err, &late) || late.ErrorCode() != "claim-timeout" || late.Waited < bound {
			t.Fatalf("%v", err)
		}
		in := late.Inspection
		if in.State != HeldNow || in.Token != who.Token || in.Evidence.Op != "first" || in.Path != d.Join(name) {
			t.Errorf("%+v", in)
		}
		if text := err.Error(); !strings.Contains(text, d.Join(name)) || !strings.Contains(text, fmt.Sprintf("of test first, pid %d", os.Getpid())) {
			t.Error(text)
		}
	}
	if content(t, d) != before || !first.Holds() {
		t.Error("the claim was changed")
	}
	check(t, first.Leave())
	empty(t, d)
}

func TestAWaiterIsToldHowLongItHasWaited(t *testing.T) {
	d := open(t, t.TempDir())
	var told []time.Duration
	who := me("told")
	who.Waiting = func(waited time.Duration) { told = append(told, waited) }
	check(t, enter(t, d, who).Leave())
	if len(told) > 0 {
		t.Errorf("%v of a claim that was free", told)
	}
	first := enter(t, d, me("first"))
	defer first.Leave()
	_, err := Enter(context.Background(), d, name, who, 60*time.Millisecond)
	if err == nil || len(told) < 2 || !slices.IsSorted(told) || told[len(told)-1] >= 60*time.Millisecond {
		t.Errorf("%v, told %v", err, told)
	}
}

func TestAWaiterEntersWhenTheHolderLeaves(t *testing.T) {
	d := open(t, t.TempDir())
	first := enter(t, d, me("first"))
	entered := make(chan *Held)
	go func() { entered <- enter(t, d, me("second")) }()
	select {
	case <-entered:
		t.Fatal("two are inside")
	case <-time.After(50 * time.Millisecond):
	}
	check(t, first.Leave())
	testkit.Within(t, 20*time.Second, func() { check(t, (<-entered).Leave()) })
	empty(t, d)
}

func TestACancelledWaitLeavesNothing(t *testing.T) {
	d := open(t, t.TempDir())
	first := enter(t, d, me("first"))
	before := content(t, d)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		_, err := Enter(ctx, d, name, me("second"), ample)
		done <- err
	}()
	time.AfterFunc(30*time.Millisecond, cancel)
	testkit.Within(t, 20*time.Second, func() {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	if content(t, d) != before {
		t.Error("the claim was changed")
	}
	check(t, first.Leave())
	empty(t, d)
}

// No participant leaves anything but a regular file, so waiting would never end.
func TestWhatIsNoFileIsRefusedAtOnce(t *testing.T) {
	for what, make := range map[regfile.Kind]func(path string) error{
		regfile.FIFO:      func(path string) error { return unix.Mkfifo(path, 0o644) },
		regfile.Directory: func(path string) error { return os.Mkdir(path, 0o755) },
		regfile.Symlink:   func(path string) error { return os.Symlink("bystander", path) },
		regfile.Socket: func(path string) error {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
			if err == nil {
				l.SetUnlinkOnClose(false)
				err = l.Close()
			}
			return err
		},
	} {
		t.Run(string(what), func(t *testing.T) {
			d := open(t, t.TempDir())
			check(t, os.WriteFile(d.Join("bystander"), []byte("b"), 0o600))
			check(t, make(d.Join(name)))
			for verb, do := range map[string]func() error{
				"enter":   func() error { _, err := Enter(context.Background(), d, name, me("x"), ample); return err },
				"inspect": func() error { _, err := Inspect(d, name); return err },
				"clear":   func() error { _, err := Clear(d, name, ClearRequest{Token: "t", Force: true}); return err },
			} {
				testkit.Within(t, 20*time.Second, func() {
					var e *regfile.Error
					if err := do(); !errors.As(err, &e) || e.Code != regfile.CodeNotRegular || e.Kind != what {
						t.Errorf("%s: %v", verb, err)
					}
				})
			}
			if st, err := d.Lstat(name); err != nil || st.Kind != what {
				t.Errorf("it is %+v, %v", st, err)
			}
			if b, err := os.ReadFile(d.Join("bystander")); err != nil || string(b) != "b" {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
}

func TestADirectoryThatIsGoneIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub")
	check(t, os.Mkdir(path, 0o755))
	d := open(t, path)
	check(t, os.Remove(path))
	_, err := Enter(context.Background(), d, name, me("x"), ample)
	var e *regfile.Error
	if !errors.As(err, &e) || e.Code != regfile.CodeIO || !errors.Is(err, unix.ENOENT) {
		t.Error(err)
	}
}

// lockOf is the kernel lock of the claim, as an inspector or a clearer has it for a moment.
func lockOf(t *testing.T, d *regfile.Dir) (unlock func()) {
	t.Helper()
	f, err := os.OpenFile(d.Join(name), os.O_RDWR, 0)
	check(t, err)
	check(t, unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB))
	return func() { f.Close() }
}

// A claim that is cleared before its creator had the lock was never entered: the creator starts over, and touches
// neither what stands in its place by then nor the file that is gone.
func TestAClaimClearedBeforeItIsLockedStartsOver(t *testing.T) {
	for _, successor := range []string{"", "a successor's"} {
		d := open(t, t.TempDir())
		h, err := create(d, name)
		check(t, err)
		unlock := lockOf(t, d)
		entered := make(chan bool)
		go func() {
			ok, err := h.enter(context.Background(), me("x"), time.Now().Add(ample))
			if err != nil {
				t.Error(err)
			}
			entered <- ok
		}()
		time.Sleep(20 * time.Millisecond)
		check(t, os.Remove(d.Join(name)))
		if successor != "" {
			write(t, d, successor)
		}
		unlock()
		testkit.Within(t, 20*time.Second, func() {
			if <-entered {
				t.Error("it is inside a claim that was cleared")
			}
		})
		if successor != "" {
			if got := content(t, d); got != successor {
				t.Errorf("the successor's claim became %q", got)
			}
			check(t, os.Remove(d.Join(name)))
		}
		empty(t, d)
	}
}

// An inspector that has the lock for a moment delays the creator, who writes its evidence only afterwards.
func TestAnInspectedClaimIsEnteredAfterwards(t *testing.T) {
	d := open(t, t.TempDir())
	h, err := create(d, name)
	check(t, err)
	unlock := lockOf(t, d)
	entered := make(chan bool)
	go func() {
		ok, err := h.enter(context.Background(), me("x"), time.Now().Add(ample))
		entered <- ok && err == nil
	}()
	select {
	case <-entered:
		t.Fatal("it entered without the lock")
	case <-time.After(30 * time.Millisecond):
	}
	if got := content(t, d); got != "" {
		t.Errorf("evidence before the lock: %q", got)
	}
	unlock()
	testkit.Within(t, 20*time.Second, func() {
		if !<-entered {
			t.Error("it did not enter")
		}
	})
	state(t, d, HeldNow)
	check(t, h.Leave())
	empty(t, d)
}

// Whoever has the lock may be about to unlink the path. A creator that gives up leaves its claim to it.
func TestACreatorThatCannotLockGivesUpInTime(t *testing.T) {
	d := open(t, t.TempDir())
	h, err := create(d, name)
	check(t, err)
	unlock := lockOf(t, d)
	_, err = h.enter(context.Background(), me("x"), time.Now().Add(20*time.Millisecond))
	var late *TimeoutError
	if !errors.As(err, &late) || late.Inspection.State != HeldNow {
		t.Error(err)
	}
	if got := content(t, d); got != "" {
		t.Errorf("it wrote %q", got)
	}
	unlock()
	check(t, os.Remove(d.Join(name)))

	h, err = create(d, name)
	check(t, err)
	unlock = lockOf(t, d)
	defer unlock()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := h.enter(ctx, me("x"), time.Now().Add(ample)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Somebody removed a live claim by hand, and another entered: the first one learns of it and leaves the other's claim.
func TestALostClaimIsNoticedAndTheSuccessorsStays(t *testing.T) {
	d := open(t, t.TempDir())
	first := enter(t, d, me("first"))
	check(t, os.Remove(d.Join(name)))
	if first.Holds() {
		t.Error("it holds a claim that is gone")
	}
	second := enter(t, d, me("second"))
	if first.Holds() || !second.Holds() {
		t.Error("the first holds the second's claim")
	}
	before := content(t, d)
	check(t, first.Leave())
	if content(t, d) != before || !second.Holds() {
		t.Error("the first removed the second's claim")
	}
	check(t, second.Leave())
	empty(t, d)
}

// Evidence is for people. A full disk must not keep a holder from releasing what it has.
func TestAClaimWithoutRoomForEvidenceHolds(t *testing.T) {
	d := open(t, t.TempDir())
	r := testkit.Begin(t, testkit.Command("no room", d.Path()))
	in := state(t, d, HeldNow)
	if in.Evidence != nil || in.Token != "" || content(t, d) != "" {
		t.Errorf("%+v", in)
	}
	r.End(t)
	empty(t, d)
}

func withoutRoomForEvidence(args []string) error {
	limit := syscall.Rlimit{Cur: 0, Max: 0}
	if len(args) > 1 {
		limit.Cur, limit.Max = 20, 20
	}
	d, err := regfile.OpenDir(args[0])
	if err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	h, err := Enter(context.Background(), d, name, me("x"), time.Minute)
	if err != nil {
		return err
	}
	testkit.Ready(fmt.Sprint(h.Holds()))
	return h.Leave()
}

// Half of the evidence is none: the line is cut to nothing again.
func TestEvidenceIsWholeOrNothing(t *testing.T) {
	d := open(t, t.TempDir())
	r := testkit.Begin(t, testkit.Command("no room", d.Path(), "for all of it"))
	if r.Line != "true" || content(t, d) != "" {
		t.Errorf("holds: %s, content %q", r.Line, content(t, d))
	}
	r.End(t)
	empty(t, d)
}
