package holdfast_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/internal/testkit"
	"holdfast/internal/testkit/crash"
	"holdfast/pkg/procid"
	"holdfast/pkg/registry"
)

// mendHome is a state home in which an operation on one root is cut off, beside another root with a service.
type mendHome struct {
	dir   string
	other string // listing of the other root's directory, which nothing may touch; empty without one
}

func (m mendHome) path() string        { return filepath.Join(m.dir, "home") }
func (m mendHome) root() string        { return filepath.Join(m.dir, "root") }
func (m mendHome) in(id string) string { return filepath.Join(m.path(), "roots", registry.RootID(id)) }
func (m mendHome) otherRoot() string   { return filepath.Join(m.dir, "other") }
func (m mendHome) receipt() string     { return filepath.Join(m.dir, "receipt") }
func (m mendHome) endpoint() string    { return "http://127.0.0.1:4101" }
func (m mendHome) requested() string   { return "http://127.0.0.1:0" }
func mendMust(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// newMendHome has the two root directories and nothing else.
func newMendHome(t testing.TB) *mendHome {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	mendMust(t, err)
	m := &mendHome{dir: dir}
	mendMust(t, os.Mkdir(m.root(), 0o755), os.Mkdir(m.otherRoot(), 0o755))
	return m
}

func (m *mendHome) open(t testing.TB) *registry.Home {
	t.Helper()
	h, err := registry.Open(m.path(), registry.Options{Tool: "crash test"})
	mendMust(t, err)
	return h
}

// acquire registers a root for the process.
func (m *mendHome) acquire(t testing.TB, root, endpoint, receipt string, pid int) {
	t.Helper()
	h := m.open(t)
	defer h.Close()
	owner, err := procid.Of(pid)
	mendMust(t, err)
	_, err = h.Acquire(context.Background(), registry.Acquire{Root: root, Requested: m.requested(), Bound: endpoint, Owner: owner, Receipt: receipt})
	mendMust(t, err)
}

// beside registers the other root.
func (m *mendHome) beside(t testing.TB) *mendHome {
	t.Helper()
	m.acquire(t, m.otherRoot(), "http://127.0.0.1:4100", filepath.Join(m.dir, "other-receipt"), os.Getpid())
	m.note(t)
	return m
}

// note remembers the other root's directory.
func (m *mendHome) note(t testing.TB) {
	t.Helper()
	var err error
	m.other, err = testkit.Listing(m.in(m.otherRoot()))
	mendMust(t, err)
}

// run is a regctl command to be killed.
func (m *mendHome) run(args ...string) crash.Run {
	var state []string
	for _, name := range []string{"", "registry", "registry/format.json", "registry/roots.json", "registry/registry.lock", "roots", "stage", "receipts", "broken"} {
		state = append(state, filepath.Join(m.path(), name))
	}
	for _, name := range []string{"", "format.json", "config.json", "registration.json", "owner.lock", "local-capability.json", "checkout.lock"} {
		state = append(state, filepath.Join(m.in(m.root()), name))
	}
	return crash.Run{Path: "regctl", Args: args, Dir: m.dir, State: append(state, m.dir, m.receipt()), Env: m.env()}
}

func (m *mendHome) env() []string {
	return append(os.Environ(), "HOLDFAST_STATE_HOME="+m.path(), "GORACE=atexit_sleep_ms=0")
}

// mendStep is a step of a plan as regctl prints it; the last object has the digest.
type mendStep struct {
	Code, Action, Path, Root, Why, MovedTo, Digest string
}

// regctl runs a verb, which must succeed, and returns what it printed.
func (m *mendHome) regctl(t testing.TB, args ...string) (all []mendStep) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "regctl", args...)
	cmd.Dir, cmd.Env = m.dir, m.env()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("regctl %q: %v\n%s%s", args, err, out, &stderr)
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var s mendStep
		mendMust(t, dec.Decode(&s))
		all = append(all, s)
	}
	return all
}

// mendFiles are the bytes of every file, by path.
type mendFiles map[string]string

// files reads what is there of the registry, of the roots and of what was moved away.
func (m *mendHome) files(t testing.TB) mendFiles {
	t.Helper()
	files := mendFiles{}
	for _, dir := range []string{"registry", "roots", "broken"} {
		err := filepath.WalkDir(filepath.Join(m.path(), dir), func(path string, d fs.DirEntry, err error) error {
			if os.IsNotExist(err) {
				return nil
			}
			if err != nil || d.IsDir() || d.Name() == "registry.lock" {
				return err
			}
			b, err := os.ReadFile(path)
			files[path] = string(b)
			return err
		})
		mendMust(t, err)
	}
	return files
}

// lostSince are the files whose bytes are neither in them any more nor in broken/.
func (m *mendHome) lostSince(t testing.TB, was mendFiles) (lost []string) {
	now := m.files(t)
	for path, content := range was {
		if now[path] == content && content != "" {
			continue
		}
		kept := false
		for other, text := range now {
			kept = kept || text == content && strings.HasPrefix(other, filepath.Join(m.path(), "broken")+"/")
		}
		if !kept {
			lost = append(lost, filepath.Base(path))
		}
	}
	slices.Sort(lost)
	return lost
}

// readable checks that every root's state can be told, and that the rows can be listed.
func (m *mendHome) readable(t testing.TB) registry.Inspection {
	t.Helper()
	h := m.open(t)
	defer h.Close()
	for _, root := range []string{m.root(), m.otherRoot()} {
		if in := h.Inspect(root); in.State == registry.StateUncertain || in.Fenced {
			t.Errorf("%s is %s, fenced %v: %v", root, in.State, in.Fenced, in.Err)
		}
	}
	rows := 0
	err := h.List(func(in registry.Inspection, _ registry.Reservation) error {
		rows++
		return in.Err
	})
	if err != nil {
		t.Errorf("the list: %v", err)
	}
	if m.other != "" && rows == 0 {
		t.Error("the other root's row is gone")
	}
	return h.Inspect(m.root())
}

// undisturbed checks that the other root's directory is as it was, down to inodes and times.
func (m *mendHome) undisturbed(t testing.TB) {
	t.Helper()
	if m.other == "" {
		return
	}
	if now, err := testkit.Listing(m.in(m.otherRoot())); err != nil || now != m.other {
		t.Errorf("%v: the other root was\n%s\nand is\n%s", err, m.other, now)
	}
}

// mend repairs as an operator does and checks that exactly the plan is done.
func (m *mendHome) mend(t testing.TB) {
	t.Helper()
	was := m.files(t)
	plan := m.regctl(t, "repair")
	if now := m.files(t); !maps.Equal(now, was) {
		t.Errorf("a plan changed something: %q, then %q", was, now)
	}
	done := m.regctl(t, "repair", "--apply", "--expected", plan[len(plan)-1].Digest)
	want := maps.Clone(was)
	if len(done) != len(plan) {
		t.Fatalf("planned %+v, done %+v", plan, done)
	}
	for i, s := range done[:len(done)-1] {
		if p := plan[i]; p.Action != s.Action || p.Path != s.Path || p.Why != s.Why || p.Root != s.Root {
			t.Errorf("planned %+v, done %+v", p, s)
		}
		switch s.Action {
		case "move":
			want[s.MovedTo] = want[s.Path]
			delete(want, s.Path)
		case "rewrite":
			want[s.MovedTo] = want[s.Path]
			want[s.Path] = mendWithout(t, want[s.Path], s.Root)
		case "unlock":
			if _, err := os.Lstat(s.Path); err == nil || i != len(done)-2 {
				t.Errorf("%s is there still, or was not the last: %+v", s.Path, done)
			}
		default:
			t.Errorf("a step that no crash asks for: %+v", s)
		}
	}
	if now := m.files(t); !maps.Equal(now, want) {
		t.Errorf("after %+v there is\n%q\nnot\n%q", done, now, want)
	}
	if lost := m.lostSince(t, was); len(lost) > 0 {
		t.Errorf("the repair lost %q", lost)
	}
	if again := m.regctl(t, "repair"); len(again) != 1 {
		t.Errorf("after the repair there is more to do: %+v", again)
	}
}

// mendWithout is roots.json without a root's row, the others as they are.
func mendWithout(t testing.TB, content, root string) string {
	t.Helper()
	var file struct {
		Schema  string            `json:"schema"`
		Entries []json.RawMessage `json:"entries"`
	}
	mendMust(t, json.Unmarshal([]byte(content), &file))
	n := len(file.Entries)
	file.Entries = slices.DeleteFunc(file.Entries, func(row json.RawMessage) bool { return bytes.HasPrefix(row, []byte(`{"root":"`+root+`",`)) })
	if len(file.Entries) != n-1 {
		t.Errorf("%s has no row of %s", content, root)
	}
	b, err := json.Marshal(file)
	mendMust(t, err)
	return string(b) + "\n"
}

// mendOwner is the pid of a process that lives as long as the test: its own.
func mendOwner() string { return strconv.Itoa(os.Getpid()) }
