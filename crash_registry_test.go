package holdfast_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/internal/testkit/crash"
	"holdfast/pkg/procid"
	"holdfast/pkg/registry"
)

// crashRegistry is a state home with a service beside, and the root that a verb is killed on.
type crashRegistry struct {
	dir, home string
	root      string
	receipt   string // of the root's service
	beside    string // another root, with a service; empty for none
	args      []string
	order     []registry.Step // what the verb does, in its order
	judge     func(t testing.TB, h *registry.Home, a registryAftermath)
}

// registryAftermath is what a kill left.
type registryAftermath struct {
	before, now map[string]string // every file below the state home, but stages, receipts and the lock
	steps       int               // how many steps of the order were done
	fenced      bool
}

// TestKilledRegistry kills every verb that changes a registry at every call it makes on the state. Whatever is left is the state
// before, the state after, or one that is fenced by the lock and that is exactly what the list of steps says; no other root is
// touched.
func TestKilledRegistry(t *testing.T) {
	for name, stage := range map[string]func(t testing.TB) crashRegistry{
		"init":                         crashInit,
		"acquire-in-a-fresh-home":      crashFirstAcquire,
		"acquire-of-a-configured-root": crashConfiguredAcquire,
		"acquire-beside-another":       crashSecondAcquire,
		"acquire-after-a-release":      crashNextAcquire,
		"phase":                        crashPhase,
		"release":                      crashReleaseService,
	} {
		t.Run(name, func(t *testing.T) {
			scene := func(t testing.TB) crash.Scene { return stage(t).scene(t) }
			if raceDetector { // every start of a program is slow then
				crash.AtEveryName(t, scene)
				return
			}
			crash.AtChanges(t, changesRegistry, scene)
		})
	}
}

// changesRegistry leaves out the closing of what holds no lock.
func changesRegistry(c crash.Call) bool {
	return c.Name != "close" || strings.Contains(c.Line, "/registry.lock>")
}

func newCrashRegistry(t testing.TB) crashRegistry {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := crashRegistry{dir: dir, home: filepath.Join(dir, "home"), root: filepath.Join(dir, "root"), receipt: filepath.Join(dir, "proof", "receipt")}
	for _, d := range []string{c.root, filepath.Dir(c.receipt), filepath.Join(dir, "third")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (c crashRegistry) open(t testing.TB) *registry.Home {
	t.Helper()
	h, err := registry.Open(c.home, registry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// acquire registers a service of this process.
func (c crashRegistry) acquire(t testing.TB, root, port, receipt string) {
	t.Helper()
	self, err := procid.Self()
	if err != nil {
		t.Fatal(err)
	}
	h := c.open(t)
	defer h.Close()
	if _, err := h.Acquire(context.Background(), registry.Acquire{Root: root, Requested: "http://127.0.0.1:" + port, Owner: self, Receipt: receipt}); err != nil {
		t.Fatal(err)
	}
}

// acquiring makes the scene one of an acquire of the root.
func (c crashRegistry) acquiring() crashRegistry {
	c.args = []string{"acquire", "--root", c.root, "--endpoint", "http://127.0.0.1:4100", "--owner-pid", fmt.Sprint(os.Getpid()), "--receipt", c.receipt}
	c.order = registry.AcquireOrder
	c.judge = func(t testing.TB, h *registry.Home, a registryAftermath) {
		in := h.Inspect(c.root)
		switch a.steps {
		case 0:
			if in.State != registry.StateAbsent && in.State != registry.State(registry.Stopped) {
				t.Errorf("nothing was done, and the root is %s: %v", in.State, in.Err)
			}
		case len(c.order):
			if in.State != registry.State(registry.Idle) || in.Verdict.Word != procid.Live {
				t.Errorf("everything was done, and the root is %s: %v", in.State, in.Err)
			}
		default:
			if in.State != registry.StateUncertain || !in.Fenced {
				t.Errorf("after %d steps the root is %s, fenced %v: %v", a.steps, in.State, in.Fenced, in.Err)
			}
		}
	}
	return c
}

func crashFirstAcquire(t testing.TB) crashRegistry { return newCrashRegistry(t).acquiring() }

func crashConfiguredAcquire(t testing.TB) crashRegistry {
	c := newCrashRegistry(t)
	h := c.open(t)
	defer h.Close()
	if err := h.Init(context.Background(), registry.Acquire{Root: c.root, Requested: "http://127.0.0.1:4100"}); err != nil {
		t.Fatal(err)
	}
	return c.acquiring()
}

// withBeside adds a service of another root.
func (c crashRegistry) withBeside(t testing.TB) crashRegistry {
	t.Helper()
	c.beside = filepath.Join(c.dir, "beside")
	if err := os.Mkdir(c.beside, 0o700); err != nil {
		t.Fatal(err)
	}
	c.acquire(t, c.beside, "4200", filepath.Join(c.dir, "beside.receipt"))
	return c
}

func crashSecondAcquire(t testing.TB) crashRegistry {
	return newCrashRegistry(t).withBeside(t).acquiring()
}

func crashNextAcquire(t testing.TB) crashRegistry {
	c := newCrashRegistry(t).withBeside(t)
	c.acquire(t, c.root, "4100", c.receipt)
	h := c.open(t)
	defer h.Close()
	if _, err := h.Release(context.Background(), c.receipt); err != nil {
		t.Fatal(err)
	}
	return c.acquiring()
}

func crashInit(t testing.TB) crashRegistry {
	c := newCrashRegistry(t).withBeside(t)
	c.args = []string{"init", "--root", c.root, "--endpoint", "http://127.0.0.1:0"}
	for _, s := range registry.AcquireOrder {
		if s.Name == "config" || s.Name == "format" {
			c.order = append(c.order, s)
		}
	}
	c.judge = func(t testing.TB, h *registry.Home, a registryAftermath) {
		want := []registry.State{registry.StateAbsent, registry.StateUncertain, registry.State(registry.Stopped)}[a.steps]
		if in := h.Inspect(c.root); in.State != want || in.State == registry.StateUncertain && !in.Fenced {
			t.Errorf("after %d steps the root is %s, fenced %v: %v", a.steps, in.State, in.Fenced, in.Err)
		}
	}
	return c
}

// crashPhase: at every moment the registration is the old or the new one, and the receipt proves it.
func crashPhase(t testing.TB) crashRegistry {
	c := newCrashRegistry(t).withBeside(t)
	c.acquire(t, c.root, "4100", c.receipt)
	c.args = []string{"phase", "stopping", "--receipt", c.receipt}
	registration := registry.ReleaseOrder[0]
	registration.Name = "phase"
	c.order = []registry.Step{registration}
	c.judge = func(t testing.TB, h *registry.Home, a registryAftermath) {
		want := []registry.State{registry.State(registry.Idle), registry.State(registry.Stopping)}[a.steps]
		if in := h.Inspect(c.root); in.State != want {
			t.Errorf("after %d steps the root is %s: %v", a.steps, in.State, in.Err)
		}
		if r, err := h.Assert(c.receipt); err != nil || registry.State(r.Phase) != want {
			t.Errorf("the receipt does not prove it any more: %v", err)
		}
	}
	return c
}

func crashReleaseService(t testing.TB) crashRegistry {
	c := newCrashRegistry(t).withBeside(t)
	c.acquire(t, c.root, "4100", c.receipt)
	c.args = []string{"release", "--receipt", c.receipt}
	c.order = registry.ReleaseOrder
	c.judge = func(t testing.TB, h *registry.Home, a registryAftermath) {
		want := registry.StateUncertain
		switch a.steps {
		case 0:
			want = registry.State(registry.Idle)
			if _, err := h.Assert(c.receipt); err != nil {
				t.Error(err)
			}
		case len(c.order):
			want = registry.State(registry.Stopped)
		}
		if in := h.Inspect(c.root); in.State != want || in.State == registry.StateUncertain && !in.Fenced {
			t.Errorf("after %d steps the root is %s, fenced %v: %v", a.steps, in.State, in.Fenced, in.Err)
		}
	}
	return c
}

// scene is the crash test of the verb.
func (c crashRegistry) scene(t testing.TB) crash.Scene {
	before := c.files(t)
	return crash.Scene{Run: c.run(), Check: func(t testing.TB, at crash.Call) {
		h := c.open(t)
		defer h.Close()
		a := c.aftermath(t, h, before)
		if at.Name == crash.Exit && (a.fenced || a.steps != len(c.order)) {
			t.Errorf("a verb that ended by itself did %d of %d steps, fenced %v", a.steps, len(c.order), a.fenced)
		}
		if !a.fenced && a.steps != 0 && a.steps != len(c.order) {
			t.Errorf("%d steps of %d were done, and nothing fences them", a.steps, len(c.order))
		}
		c.judge(t, h, a)
		c.checkBeside(t, h, a)
		c.goOn(t, h, a, strings.HasPrefix(at.Name, "rename"))
	}}
}

// run is the verb, to be killed at what it does with the state home and the receipt. Stages have names of their own each time:
// their making and renaming is seen by their directory, and what is written into one is nobody's until then.
func (c crashRegistry) run() crash.Run {
	state := []string{c.home, c.receipt, filepath.Dir(c.receipt)}
	for dir, names := range map[string][]string{
		"registry":  {"format.json", "roots.json", "registry.lock"},
		c.rootDir(): {"format.json", "config.json", "registration.json", "owner.lock", "local-capability.json", "checkout.lock", "host-config.json"},
		"roots":     nil, "stage": nil, "receipts": nil,
	} {
		state = append(state, filepath.Join(c.home, dir))
		for _, name := range names {
			state = append(state, filepath.Join(c.home, dir, name))
		}
	}
	slices.Sort(state)
	return crash.Run{Path: "regctl", Args: c.args, Dir: c.dir, State: state, Env: append(os.Environ(), "HOLDFAST_STATE_HOME="+c.home)}
}

func (c crashRegistry) rootDir() string { return filepath.Join("roots", registry.RootID(c.root)) }

// path is where a step's file is, below the state home.
func (c crashRegistry) path(s registry.Step) string {
	if s.InRoot {
		return filepath.Join(c.rootDir(), s.File)
	}
	return filepath.Join("registry", s.File)
}

// files are the contents of the registry and of all roots by path, without the lock.
func (c crashRegistry) files(t testing.TB) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, dir := range []string{"registry", "roots"} {
		err := filepath.WalkDir(filepath.Join(c.home, dir), func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) || err == nil && (d.IsDir() || d.Name() == "registry.lock") {
				return nil
			}
			if err != nil {
				return err
			}
			content, err := os.ReadFile(path)
			name, _ := filepath.Rel(c.home, path)
			files[name] = string(content)
			if info, statErr := d.Info(); statErr == nil && info.Mode() != 0o600 {
				t.Errorf("%s has mode %s", name, info.Mode())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// aftermath finds out which steps were done. They must be the first ones of the order, and nothing else may have changed.
func (c crashRegistry) aftermath(t testing.TB, h *registry.Home, before map[string]string) registryAftermath {
	t.Helper()
	a := registryAftermath{before: before, now: c.files(t)}
	reg, err := h.Registry()
	a.fenced = reg.Fenced
	if err != nil && !a.fenced {
		t.Errorf("the registry is not readable, and nothing fences it: %v", err)
	}
	expected := maps.Clone(before)
	pending := ""
	for i, s := range c.order {
		path := c.path(s)
		was, had := before[path]
		now, has := a.now[path]
		done := has != had || was != now
		if s.Absent && had {
			done = pending == "" // there is nothing to do
		}
		switch {
		case !done:
			if pending == "" {
				pending = s.Name
			}
			continue
		case pending != "":
			t.Errorf("the step %s was done before %s", s.Name, pending)
		case s.Does == registry.Removes && has, s.Does != registry.Removes && !has:
			t.Errorf("the step %s was to %s its file: there before %v, now %v", s.Name, s.Does, had, has)
		}
		a.steps = i + 1
		if has {
			expected[path] = now
			checkWholeFile(t, path, now)
		} else {
			delete(expected, path)
		}
	}
	if pending != "" && a.steps > 0 && allSkipped(c.order[:a.steps], before, c) {
		a.steps = 0
	}
	if !maps.Equal(expected, a.now) {
		t.Errorf("something else changed:\n%q\nnow\n%q", slices.Sorted(maps.Keys(expected)), slices.Sorted(maps.Keys(a.now)))
	}
	return a
}

// allSkipped reports whether none of the steps had anything to do.
func allSkipped(steps []registry.Step, before map[string]string, c crashRegistry) bool {
	return !slices.ContainsFunc(steps, func(s registry.Step) bool {
		_, had := before[c.path(s)]
		return !s.Absent || !had
	})
}

// checkWholeFile: whatever has got its name is one line of JSON.
func checkWholeFile(t testing.TB, path, content string) {
	t.Helper()
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(content)); err != nil || compact.String()+"\n" != content {
		t.Errorf("%s is not whole: %v: %q", path, err, content)
	}
}

// checkBeside: the other service is there as it was, in its files, in the registry and in a list.
func (c crashRegistry) checkBeside(t testing.TB, h *registry.Home, a registryAftermath) {
	t.Helper()
	if c.beside == "" {
		return
	}
	if in := h.Inspect(c.beside); in.State != registry.State(registry.Idle) || in.Err != nil || in.Fenced != a.fenced {
		t.Errorf("the other root is %s, fenced %v: %v", in.State, in.Fenced, in.Err)
	}
	if _, err := h.Assert(filepath.Join(c.dir, "beside.receipt")); err != nil {
		t.Errorf("the other root's receipt: %v", err)
	}
	listed := false
	err := h.List(func(in registry.Inspection, row registry.Reservation) error {
		listed = listed || row.Root == c.beside && in.Err == nil
		return nil
	})
	if err != nil || !listed {
		t.Errorf("the other root is not listed: %v", err)
	}
	if _, err := h.Access(c.beside); (err == nil) == a.fenced {
		t.Errorf("access to the other root, fenced %v: %v", a.fenced, err)
	}
}

// goOn: while the lock is there nothing changes; where nothing is half done it is all that has to go, and then a third root is
// acquired, which also sweeps the stages.
// Being refused takes its time, so it is tried only when asked for.
func (c crashRegistry) goOn(t testing.TB, h *registry.Home, a registryAftermath, refused bool) {
	t.Helper()
	self, err := procid.Self()
	if err != nil {
		t.Fatal(err)
	}
	third := registry.Acquire{Root: filepath.Join(c.dir, "third"), Requested: "http://127.0.0.1:4300", Owner: self}
	if a.fenced && refused {
		var refusal *registry.Refusal
		if _, err := h.Acquire(context.Background(), third); !errors.As(err, &refusal) || refusal.Code != registry.CodeUnavailable || refusal.Lock == nil {
			t.Errorf("a retained lock does not keep others out: %v", err)
		}
		if now := c.files(t); !maps.Equal(now, a.now) {
			t.Error("a refusal changed something")
		}
	}
	if a.fenced {
		if a.steps != 0 && a.steps != len(c.order) {
			return
		}
		if err := os.Remove(filepath.Join(c.home, "registry", "registry.lock")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Acquire(context.Background(), third); err != nil {
		t.Errorf("it does not go on: %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(c.home, "stage")); err != nil || len(left) > 0 {
		t.Errorf("the stages are not swept: %v, %v", left, err)
	}
}
