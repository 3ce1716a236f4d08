package crash

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

// workEnv makes the test binary a small program: it works on the directory that the variable names.
const workEnv = "CRASH_TEST_WORK"

func TestMain(m *testing.M) {
	if dir := os.Getenv(workEnv); dir != "" {
		work(dir)
		return
	}
	os.Exit(m.Run())
}

// work publishes a file the way the real programs do, relative to the directory's descriptor, and makes other calls of
// the same names before and between, which are none of the state's business.
func work(dir string) {
	outside, err := os.Create(dir + ".outside")
	must(err)
	outside.WriteString("not counted")
	dirfd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	must(err)
	fd, err := unix.Openat(dirfd, "stage", unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	must(err)
	_, err = unix.Write(fd, []byte("one "))
	must(err)
	outside.WriteString("not counted")
	_, err = unix.Write(fd, []byte("two"))
	must(err)
	must(unix.Fdatasync(fd))
	must(unix.Renameat(dirfd, "stage", dirfd, "target"))
	if os.Getenv("CRASH_TEST_SECOND_THREAD") != "" {
		done := make(chan error)
		go func() { done <- unix.Unlinkat(dirfd, "target", 0) }()
		must(<-done)
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func workRun(t testing.TB, env ...string) (run Run, dir string) {
	testkit.NeedTool(t, "strace")
	self, err := os.Executable()
	must(err)
	dir = filepath.Join(t.TempDir(), "state")
	must(os.Mkdir(dir, 0o755))
	return Run{
		Path:  self,
		Env:   append(append(os.Environ(), workEnv+"="+dir), env...),
		State: []string{dir, filepath.Join(dir, "stage"), filepath.Join(dir, "target")},
	}, dir
}

// TestListsCallsOnTheStateOnly: in order, relative ones and those on descriptors included, others left out.
func TestListsCallsOnTheStateOnly(t *testing.T) {
	run, _ := workRun(t)
	var got []string
	for _, c := range Calls(t, run) {
		got = append(got, c.String())
	}
	want := []string{"openat-1", "openat-2", "write-1", "write-2", "fdatasync-1", "renameat-1"}
	if !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
}

// TestListsChangesUnderADirectory: what is named or open below it, whatever it is called, and the kill hits among calls of the
// same names that are not listed.
func TestListsChangesUnderADirectory(t *testing.T) {
	under := func(t testing.TB) (Run, string) {
		run, dir := workRun(t)
		real, err := filepath.EvalSymlinks(dir)
		must(err)
		run.State, run.Under = nil, []string{real}
		return run, dir
	}
	run, _ := under(t)
	var got []string
	for _, c := range Calls(t, run) {
		got = append(got, c.String())
	}
	if want := []string{"openat-1", "write-1", "write-2", "fdatasync-1", "renameat-1"}; !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
	want := map[string]string{"openat-1": "", "write-1": "", "write-2": "one ", "fdatasync-1": "one two", "renameat-1": "one two"}
	AtEveryChange(t, func(t testing.TB) Scene {
		run, dir := under(t)
		return Scene{run, func(t testing.TB, at Call) {
			if found, _ := os.ReadFile(filepath.Join(dir, "stage")); at.Name != Exit && string(found) != want[at.String()] {
				t.Errorf("at %s the stage had %q, want %q", at, found, want[at.String()])
			}
		}}
	})
}

// TestKillsBeforeTheCall: at each call everything before it was done and the call was not.
func TestKillsBeforeTheCall(t *testing.T) {
	want := map[string]string{
		"openat-1": "", "openat-2": "", "write-1": "stage:", "write-2": "stage:one ",
		"fdatasync-1": "stage:one two", "renameat-1": "stage:one two", "exit-1": "target:one two",
	}
	AtEveryCall(t, func(t testing.TB) Scene {
		run, dir := workRun(t)
		return Scene{run, func(t testing.TB, at Call) {
			found := ""
			entries, err := os.ReadDir(dir)
			must(err)
			for _, e := range entries {
				content, err := os.ReadFile(filepath.Join(dir, e.Name()))
				must(err)
				found += e.Name() + ":" + string(content)
			}
			if expected, known := want[at.String()]; !known || found != expected {
				t.Errorf("at %s there was %q, want %q", at, found, expected)
			}
		}}
	})
}

// TestChangesLeavesOutWhatOnlyLooks: the opening of the directory, but no other call of that run.
func TestChangesLeavesOutWhatOnlyLooks(t *testing.T) {
	run, _ := workRun(t)
	for i, c := range Calls(t, run) {
		if c.changes() != (i > 0) {
			t.Errorf("%s is taken for the wrong kind", c.Line)
		}
	}
}

// TestStateBehindASymlink: a descriptor is open on the real path, whatever path the program was given.
func TestStateBehindASymlink(t *testing.T) {
	run, dir := workRun(t)
	link := filepath.Join(t.TempDir(), "link")
	must(os.Symlink(filepath.Dir(dir), link))
	for i, p := range run.State {
		run.State[i] = strings.Replace(p, filepath.Dir(dir), link, 1)
	}
	run.Env = append(run.Env, workEnv+"="+filepath.Join(link, "state"))
	if calls := Calls(t, run); len(calls) != 6 {
		t.Errorf("listed %d calls, want 6: %v", len(calls), calls)
	}
}

// TestRefusesWhatProvesNothing: a kill that did not hit, a run without calls, calls from two threads.
func TestRefusesWhatProvesNothing(t *testing.T) {
	calls := func(change func(*Run)) error {
		run, _ := workRun(t)
		change(&run)
		_, err := list(run)
		return err
	}
	killed := func(at Call) error {
		run, _ := workRun(t)
		return kill(run, at)
	}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"no call":       {calls(func(r *Run) { r.State = []string{r.State[0] + ".elsewhere"} }), "made no call"},
		"no paths":      {calls(func(r *Run) { r.State = nil }), "no paths"},
		"relative path": {calls(func(r *Run) { r.State = []string{"state"} }), "not absolute"},
		"failed run":    {calls(func(r *Run) { r.Path = "false" }), "did not succeed"},
		"two threads":   {calls(func(r *Run) { r.Env = append(r.Env, "CRASH_TEST_SECOND_THREAD=1") }), "two threads"},
		"never reached": {killed(Call{Name: "write", K: 3, index: 5}), "was not killed"},
		"another call":  {killed(Call{Name: "write", K: 2, index: 2}), "killed at its call 3"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v, want an error that says %q", name, c.err, c.want)
		}
	}
}
