package claim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"holdfast/internal/testkit"
	"holdfast/pkg/procid"
	"holdfast/pkg/regfile"
)

func TestMain(m *testing.M) {
	testkit.Main(m, map[string]testkit.Part{
		"hold":     hold,
		"count":    count,
		"say":      say,
		"ordinary": ordinaryUser,
		"no room":  withoutRoomForEvidence,
	})
}

const (
	name  = "x.mutex"
	ample = time.Hour // a bound that a test never waits for
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, path string) *regfile.Dir {
	t.Helper()
	d, err := regfile.OpenDir(path)
	check(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

func write(t testing.TB, d *regfile.Dir, content string) {
	t.Helper()
	check(t, os.WriteFile(d.Join(name), []byte(content), 0o600))
}

func content(t testing.TB, d *regfile.Dir) string {
	t.Helper()
	b, err := os.ReadFile(d.Join(name))
	check(t, err)
	return string(b)
}

func empty(t testing.TB, d *regfile.Dir) {
	t.Helper()
	if names, err := d.Names(); err != nil || len(names) != 0 {
		t.Errorf("the directory holds %q, %v", names, err)
	}
}

// me is this process, as it enters.
func me(op string) Who {
	self, err := procid.Self()
	if err != nil {
		panic(err)
	}
	return Who{Tool: "test", Op: op, Token: uuid.NewString(), Self: self}
}

// ghost is a process that has ended.
var ghost = sync.OnceValue(func() procid.Identity {
	out, err := testkit.Command("say").Output()
	if err != nil {
		panic(err)
	}
	var id procid.Identity
	if _, err := fmt.Sscan(string(out), &id.PID, &id.StartKey, &id.Hostname); err != nil {
		panic(err)
	}
	return id
})

// say prints who this process is, and ends.
func say([]string) error {
	self, err := procid.Self()
	fmt.Println(self.PID, self.StartKey, self.Hostname)
	return err
}

func enter(t testing.TB, d *regfile.Dir, who Who) *Held {
	t.Helper()
	h, err := Enter(context.Background(), d, name, who, ample)
	check(t, err)
	return h
}

func inspected(t testing.TB, d *regfile.Dir) Inspection {
	t.Helper()
	in, err := Inspect(d, name)
	check(t, err)
	return in
}

func state(t testing.TB, d *regfile.Dir, want State) Inspection {
	t.Helper()
	in := inspected(t, d)
	if in.State != want || in.Path != d.Join(name) || in.Reason == "" {
		t.Errorf("%+v, want %s", in, want)
	}
	return in
}

// uncleared expects Clear to leave the claim as it is, with that code.
func uncleared(t testing.TB, d *regfile.Dir, req ClearRequest, code string) {
	t.Helper()
	before := content(t, d)
	_, err := Clear(d, name, req)
	var e *ClearError
	if !errors.As(err, &e) || e.Code != code || e.ErrorCode() != code {
		t.Errorf("%+v: %v, want %s", req, err, code)
	}
	if after := content(t, d); after != before {
		t.Errorf("the claim was %q and is %q", before, after)
	}
}

// abandon leaves behind the claim of a process that has ended.
func abandon(t testing.TB, d *regfile.Dir) Who {
	t.Helper()
	who := me("abandon")
	who.Self = ghost()
	enter(t, d, who).close()
	return who
}

// hold enters the claim in DIR, says its token, and stays inside.
func hold(args []string) error {
	d, err := regfile.OpenDir(args[0])
	if err != nil {
		return err
	}
	who := me("hold")
	h, err := Enter(context.Background(), d, name, who, time.Minute)
	if err != nil {
		return err
	}
	testkit.Ready(who.Token)
	return h.Leave()
}

// count adds 1 to the number in DIR/counter as often as it is told, reading and writing it in two steps.
func count(args []string) error {
	d, err := regfile.OpenDir(args[0])
	if err != nil {
		return err
	}
	var times int
	if _, err := fmt.Sscan(args[1], &times); err != nil {
		return err
	}
	path := filepath.Join(args[0], "counter")
	for range times {
		h, err := Enter(context.Background(), d, name, me("count"), time.Minute)
		if err != nil {
			return err
		}
		if err := increment(path); err != nil {
			return err
		}
		if !h.Holds() {
			return errors.New("the claim was lost")
		}
		if err := h.Leave(); err != nil {
			return err
		}
	}
	return nil
}

func increment(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var n int
	if _, err := fmt.Sscan(string(b), &n); err != nil {
		return fmt.Errorf("the counter holds %q: %w", b, err)
	}
	return os.WriteFile(path, []byte(fmt.Sprint(n+1)), 0o600)
}
