package claim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
	"holdfast/pkg/procid"
	"holdfast/pkg/regfile"
)

func TestNoClaim(t *testing.T) {
	d := open(t, t.TempDir())
	in := state(t, d, Absent)
	if in.Evidence != nil || in.Token != "" || in.Fingerprint != "" || in.Creator != nil {
		t.Errorf("%+v", in)
	}
	_, err := Clear(d, name, ClearRequest{Token: "t", Force: true})
	var e *ClearError
	if !errors.As(err, &e) || e.Code != "absent" || e.Error() != "there is no claim "+d.Join(name) {
		t.Error(err)
	}
	empty(t, d)
}

func TestAHeldClaimIsNeverCleared(t *testing.T) {
	d := open(t, t.TempDir())
	r := testkit.Begin(t, testkit.Command("hold", d.Path()))
	in := state(t, d, HeldNow)
	if in.Token != r.Line || in.Evidence.PID != r.Process.Pid || in.Creator == nil || in.Creator.Word != procid.Live {
		t.Errorf("%+v", in)
	}
	for _, req := range []ClearRequest{
		{Token: in.Token}, {Token: in.Token, Force: true}, {Digest: in.Fingerprint, Force: true}, {Token: "other", Force: true},
	} {
		uncleared(t, d, req, "held")
	}
	check(t, r.Process.Signal(unix.SIGSTOP)) // a holder that stands still is a holder
	uncleared(t, d, ClearRequest{Token: in.Token, Force: true}, "held")
	check(t, r.Process.Signal(unix.SIGCONT))
	r.End(t)
	empty(t, d)
}

func TestAClaimOfAKilledProcessIsAbandoned(t *testing.T) {
	d := open(t, t.TempDir())
	r := testkit.Begin(t, testkit.Command("hold", d.Path()))
	check(t, r.Process.Signal(unix.SIGKILL))
	r.Kill()
	in := state(t, d, Abandoned)
	if in.Token != r.Line || in.Creator == nil || in.Creator.Word != procid.Dead || in.Age < 0 {
		t.Errorf("%+v", in)
	}
	if text := in.Describe(); !strings.Contains(text, fmt.Sprintf("(abandoned, 0s old, of test hold, pid %d", r.Process.Pid)) {
		t.Error(text)
	}
	uncleared(t, d, ClearRequest{Token: "another"}, "claim-mismatch")
	uncleared(t, d, ClearRequest{Digest: in.Fingerprint}, "claim-mismatch")
	cleared, err := Clear(d, name, ClearRequest{Token: in.Token})
	if err != nil || cleared.State != Abandoned || cleared.Token != in.Token {
		t.Errorf("%+v, %v", cleared, err)
	}
	empty(t, d)
	check(t, enter(t, d, me("successor")).Leave())
}

// The creator's evidence says that it has the lock, and it lives, but the lock is free: it may be seen through another
// view of the file. Only a person can know.
func TestAFreeLockOfALivingCreatorProvesNothing(t *testing.T) {
	d := open(t, t.TempDir())
	who := me("x")
	enter(t, d, who).close()
	in := state(t, d, Unproven)
	uncleared(t, d, ClearRequest{Token: who.Token}, "unproven")
	cleared, err := Clear(d, name, ClearRequest{Token: who.Token, Force: true})
	if err != nil || cleared.State != Unproven || cleared.Fingerprint != in.Fingerprint {
		t.Errorf("%+v, %v", cleared, err)
	}
	empty(t, d)
}

func TestAnotherProgramsClaimIsUnproven(t *testing.T) {
	d := open(t, t.TempDir())
	for text, token := range map[string]string{
		"5c0c7d3e-8a51-4a0c-9d8e-2f6b1f0f4a11": "5c0c7d3e-8a51-4a0c-9d8e-2f6b1f0f4a11", "": "", "two words\n": "",
	} {
		write(t, d, text)
		in := state(t, d, Unproven)
		if in.Evidence != nil || in.Token != token || in.Fingerprint != regfile.Fingerprint([]byte(text)) || in.Creator != nil {
			t.Errorf("%+v", in)
		}
		if !strings.Contains(in.Describe(), "creator unknown") {
			t.Error(in.Describe())
		}
		if token != "" {
			uncleared(t, d, ClearRequest{Token: token}, "unproven")
			uncleared(t, d, ClearRequest{Token: token + "x", Force: true}, "claim-mismatch")
		}
		uncleared(t, d, ClearRequest{Force: true}, "claim-mismatch")
		uncleared(t, d, ClearRequest{Digest: in.Fingerprint}, "claim-mismatch")
		uncleared(t, d, ClearRequest{Digest: regfile.Fingerprint([]byte("other")), Force: true}, "claim-mismatch")
		_, err := Clear(d, name, ClearRequest{Digest: in.Fingerprint, Force: true})
		check(t, err)
		empty(t, d)
	}
	write(t, d, "bare-token")
	_, err := Clear(d, name, ClearRequest{Token: "bare-token", Force: true})
	check(t, err)
	empty(t, d)
}

// A claim that is larger than any evidence is not read to its end; what names it must still name this file alone.
func TestAnOversizedClaimIsNamedByMoreThanItsBeginning(t *testing.T) {
	d := open(t, t.TempDir())
	write(t, d, strings.Repeat("x", limit+1))
	in := state(t, d, Unproven)
	if in.Evidence != nil || in.Token != "" {
		t.Errorf("%+v", in)
	}
	write(t, d, strings.Repeat("x", limit)+"another end")
	if other := state(t, d, Unproven); other.Fingerprint == in.Fingerprint {
		t.Errorf("both are %s", in.Fingerprint)
	}
	uncleared(t, d, ClearRequest{Digest: in.Fingerprint, Force: true}, "claim-mismatch")
	_, err := Clear(d, name, ClearRequest{Digest: inspected(t, d).Fingerprint, Force: true})
	check(t, err)
	empty(t, d)

	check(t, os.WriteFile(d.Join(name), nil, 0o600))
	check(t, os.Truncate(d.Join(name), 1<<40))
	testkit.Within(t, 20*time.Second, func() { state(t, d, Unproven) })
}

func TestInspectingChangesNothing(t *testing.T) {
	d := open(t, t.TempDir())
	abandon(t, d)
	before, err := d.Lstat(name)
	check(t, err)
	for range 3 {
		state(t, d, Abandoned)
	}
	if after, err := d.Lstat(name); err != nil || after != before {
		t.Errorf("it was %+v and is %+v, %v", before, after, err)
	}
}

// A clearer that opened the claim before it was replaced must not remove the new one. The replacement is staged while the
// clearer waits for the lock of the old one, for which it has a fiftieth of a second.
func TestAClaimReplacedWhileItIsClearedStays(t *testing.T) {
	d := open(t, t.TempDir())
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		who := abandon(t, d)
		unlock := lockOf(t, d)
		cleared := make(chan error)
		go func() {
			_, err := Clear(d, name, ClearRequest{Token: who.Token})
			cleared <- err
		}()
		time.Sleep(3 * time.Millisecond)
		check(t, os.WriteFile(d.Join("new"), []byte("the successor's"), 0o600))
		check(t, os.Rename(d.Join("new"), d.Join(name)))
		unlock()
		err := <-cleared
		if got := content(t, d); got != "the successor's" {
			t.Fatalf("the successor's claim is %q", got)
		}
		check(t, os.Remove(d.Join(name)))
		var e *ClearError
		if errors.As(err, &e) && e.Code == "claim-changed" {
			return
		}
	}
	t.Error("the clearer never came between")
}

// An inspector has the lock for a moment and shares it with others; a clearer has it alone, or two could remove one
// claim and then its successor's.
func TestAClearerSharesTheLockWithNobody(t *testing.T) {
	d := open(t, t.TempDir())
	who := abandon(t, d)
	inspector, err := os.Open(d.Join(name))
	check(t, err)
	check(t, unix.Flock(int(inspector.Fd()), unix.LOCK_SH|unix.LOCK_NB))
	state(t, d, Abandoned)
	uncleared(t, d, ClearRequest{Token: who.Token, Force: true}, "held")
	check(t, inspector.Close())
	_, err = Clear(d, name, ClearRequest{Token: who.Token})
	check(t, err)
	empty(t, d)
}

func TestAnotherUsersClaim(t *testing.T) {
	testkit.NeedRoot(t)
	dir := t.TempDir()
	check(t, os.Chmod(filepath.Dir(dir), 0o755))
	for sub, mode := range map[string]os.FileMode{"open": 0o777, "sticky": 0o777 | os.ModeSticky} {
		check(t, os.Mkdir(filepath.Join(dir, sub), 0o777))
		check(t, os.Chmod(filepath.Join(dir, sub), mode))
		h := enter(t, open(t, filepath.Join(dir, sub)), me("root's"))
		defer h.Leave()
	}
	testkit.Play(t, testkit.Command("ordinary", dir))
}

// ordinaryUser looks at root's claims, which nobody else may read.
func ordinaryUser(args []string) error {
	if err := testkit.Become(testkit.Nobody); err != nil {
		return err
	}
	var c testkit.Checks
	d, err := regfile.OpenDir(filepath.Join(args[0], "open"))
	if err != nil {
		return err
	}
	in, err := Inspect(d, name)
	c.That(err == nil && in.State == Unproven && in.Path == d.Join(name) && strings.Contains(in.Reason, "EACCES"), "inspect: %+v, %v", in, err)
	_, err = Enter(context.Background(), d, name, me("x"), 30*time.Millisecond)
	var late *TimeoutError
	c.That(errors.As(err, &late) && late.Inspection.State == Unproven, "enter: %v", err)
	_, err = Clear(d, name, ClearRequest{Token: "t", Force: true})
	c.That(errors.Is(err, unix.EACCES), "clear: %v", err)

	d, err = regfile.OpenDir(filepath.Join(args[0], "sticky"))
	if err != nil {
		return err
	}
	var e *regfile.Error
	for verb, do := range map[string]func() error{
		"enter":   func() error { _, err := Enter(context.Background(), d, name, me("x"), ample); return err },
		"inspect": func() error { _, err := Inspect(d, name); return err },
		"clear":   func() error { _, err := Clear(d, name, ClearRequest{Token: "t", Force: true}); return err },
	} {
		err := do()
		c.That(errors.As(err, &e) && e.Code == regfile.CodeForeignOwner && e.UID == 0, "%s in a sticky directory: %v", verb, err)
	}
	return c.Err()
}
