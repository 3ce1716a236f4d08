//go:build linux

package holdfast_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"holdfast/internal/testkit/crash"
	"holdfast/pkg/fence"
	"holdfast/pkg/procid"
)

// The generations and times that are planted.
const (
	crashGeneration = "0000000000000000000000000000000a"
	crashBefore     = "0000000000000000000000000000000b"
	crashFirst      = "0000000000000000000000000000000c"
	crashAt         = "2026-01-01T00:00:00.000Z"
)

// crashSession is a session directory of one crash, with all that belongs to it, and fencectl acting on it.
type crashSession struct {
	root     string // everything is below it
	dir      string // the session directory
	selected string // the same as owners name it
	ticket   string // the owner's
	owner    *exec.Cmd
	self     procid.Identity // the owner's
}

// newCrashSession is an empty one, with a process that may be its owner.
func newCrashSession(t testing.TB) *crashSession {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	crashCheck(t, err)
	s := &crashSession{root: root, dir: filepath.Join(root, "s"), ticket: filepath.Join(root, "t", "one.ticket")}
	s.selected = s.dir
	for _, dir := range []string{s.dir, filepath.Dir(s.ticket), filepath.Join(root, "meta")} {
		crashCheck(t, os.Mkdir(dir, 0o755))
	}
	s.owner = exec.Command("sleep", "1000")
	crashCheck(t, s.owner.Start())
	t.Cleanup(s.endOwner)
	s.self, err = procid.Of(s.owner.Process.Pid)
	crashCheck(t, err)
	return s
}

func crashCheck(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// endOwner makes the owner a dead one.
func (s *crashSession) endOwner() {
	_ = s.owner.Process.Kill()
	_ = s.owner.Wait()
}

// dead is an owner that is proven dead: another process has its pid by now.
func (s *crashSession) dead() procid.Identity {
	id := s.self
	key := procid.ParseKey(id.StartKey)
	key.Ticks = 1
	id.PID, id.StartKey = os.Getpid(), key.String()
	return id
}

// uncertain is an owner of whom nothing can be said from here.
func (s *crashSession) uncertain() procid.Identity {
	return procid.Identity{PID: 77, StartKey: "plan9:1", Hostname: s.self.Hostname}
}

// claim is a claim of an owner in a state, as the owner would have come to it without a native lease's failure.
func (s *crashSession) claim(state fence.State, owner procid.Identity) *fence.Claim {
	c := &fence.Claim{
		SchemaVersion: 3, Resource: s.dir, Selected: fence.Selected{N: "s", Directory: s.dir}, State: state, Owner: owner,
		Generation: crashGeneration, WrittenAt: crashAt, Lease: fence.NeverHeld,
		FirstParticipation: fence.First{At: crashAt, Generation: crashFirst, From: fence.FromFresh},
	}
	switch state {
	case fence.Leased, fence.StorageOpen:
		c.Lease = fence.Held
	case fence.Closed:
		c.Lease = fence.Released
		c.End = &fence.End{At: crashAt, Storage: fence.StorageClosed, Lease: c.Lease}
	}
	return c
}

// reserved is a claim that a parent reserved for the garden's child, on the row of from.
func (s *crashSession) reserved(parent procid.Identity, from *fence.Claim, native string) *fence.Claim {
	c := s.claim(fence.Reserved, parent)
	c.Reservation = &fence.Reservation{
		GardenID: crashGarden, N: "s", CWD: crashCWD, Resource: s.dir, AttachIncarnation: crashIncarnation, NativeLease: native,
		From: fence.Donor{Generation: crashBefore, State: from.State, Owner: from.Owner, Lease: from.Lease, End: from.End, Selected: from.Selected},
	}
	return c
}

// plant makes a file below the root, and its directories.
func (s *crashSession) plant(t testing.TB, name string, content []byte) {
	t.Helper()
	path := filepath.Join(s.root, name)
	crashCheck(t, os.MkdirAll(filepath.Dir(path), 0o755))
	crashCheck(t, os.WriteFile(path, content, 0o600))
}

func (s *crashSession) plantClaim(t testing.TB, c *fence.Claim) {
	t.Helper()
	if _, err := fence.Decode(c.Encode()); err != nil {
		t.Fatalf("a claim that nobody writes is planted: %v\n%s", err, c.Encode())
	}
	s.plant(t, "s/"+fence.ClaimName, c.Encode())
}

// own plants the claim of the living owner in a state, and its ticket.
func (s *crashSession) own(t testing.TB, state fence.State, attempted bool) {
	t.Helper()
	s.plantClaim(t, s.claim(state, s.self))
	s.plant(t, "t/one.ticket", fmt.Appendf(nil, `{"resource":%q,"generation":%q,"storageOpenAttempted":%t}`+"\n", s.dir, crashGeneration, attempted))
}

// lease plants a native lease that was touched two minutes ago.
func (s *crashSession) lease(t testing.TB) {
	t.Helper()
	crashCheck(t, os.Mkdir(s.dir+".lock", 0o755))
	crashAge(t, s.dir+".lock")
}

// crashAge lets two minutes go by for a native lease.
func crashAge(t testing.TB, path string) {
	t.Helper()
	at := time.Now().Add(-2 * time.Minute)
	crashCheck(t, os.Chtimes(path, at, at))
}

// pid is the owner's, for a command line.
func (s *crashSession) pid() string { return strconv.Itoa(s.owner.Process.Pid) }

// run is a fencectl command, to be killed.
func (s *crashSession) run(args ...string) crash.Run {
	return crash.Run{
		Path: "fencectl", Args: args, Dir: "/", Under: []string{s.root},
		Env: append(os.Environ(), "XDG_RUNTIME_DIR="+filepath.Dir(s.ticket)),
	}
}

// crashDirectory stands for the content of a directory.
const crashDirectory = "(directory)"

// files reads everything below the root, by relative path.
func (s *crashSession) files(t testing.TB) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(s.root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == s.root {
			return err
		}
		name, _ := filepath.Rel(s.root, path)
		switch {
		case e.IsDir():
			files[name] = crashDirectory
		case e.Type().IsRegular():
			content, err := os.ReadFile(path)
			files[name] = string(content)
			return err
		default:
			files[name] = e.Type().String()
		}
		return nil
	})
	crashCheck(t, err)
	return files
}

// current is the claim as it is; nil when there is none or none that can be read.
func (s *crashSession) current(t testing.TB) *fence.Claim {
	t.Helper()
	return crashClaim(s.files(t))
}

func crashClaim(files map[string]string) *fence.Claim {
	c, err := fence.Decode([]byte(files["s/"+fence.ClaimName]))
	if err != nil {
		return nil
	}
	return c
}

// readTicket is the owner's ticket as it is; nil when there is none.
func (s *crashSession) readTicket(t testing.TB) *fence.Ticket {
	t.Helper()
	content, err := os.ReadFile(s.ticket)
	if os.IsNotExist(err) {
		return nil
	}
	crashCheck(t, err)
	ticket, err := fence.DecodeTicket(content)
	crashCheck(t, err)
	return &ticket
}

// fenceAnswer is a command's status and the first object it printed.
type fenceAnswer struct {
	t      testing.TB
	status int
	output string

	Code         string
	Remedy       string
	Generation   string
	Claim        json.RawMessage
	Tx           *struct{ State, Token string }
	Temps        []string
	NativeLeases []struct{ Path string }
	Hold         *struct{ State string }
}

// fencectl runs a verb.
func (s *crashSession) fencectl(t testing.TB, args ...string) fenceAnswer {
	t.Helper()
	return s.command(t, "fencectl", args...)
}

// paste runs a remedy as it was printed, in a shell.
func (s *crashSession) paste(t testing.TB, remedy string) fenceAnswer {
	t.Helper()
	return s.command(t, "sh", "-c", remedy)
}

func (s *crashSession) command(t testing.TB, name string, args ...string) (a fenceAnswer) {
	t.Helper()
	a.status, a.output = crashCommand(t, s.root, append(os.Environ(), crash.MainThreadEnv+"=1"), &a, name, args...)
	a.t = t
	return a
}

// is fails unless the command ended with the status and the code.
func (a fenceAnswer) is(status int, code string) fenceAnswer {
	a.t.Helper()
	if a.status != status || a.Code != code {
		a.t.Fatalf("want status %d and code %q: %s", status, code, a.output)
	}
	return a
}
