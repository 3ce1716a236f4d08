// Package crash kills a program at every system call on its state files, and lets a test examine what each kill left.
//
// A run is traced once under strace to learn, in order, which calls it makes on the paths of its state. Then, for each of
// them, it is started afresh on a fresh state and killed with SIGKILL at the entry of exactly that call: all calls
// before it were carried out, the call itself was not. A kill after the last call is the traced run's own end, which is
// examined too.
//
// A program that stages files under random names is traced without -P (Run.Under): its calls are picked from all by the
// paths that strace prints, and counted among all of its thread. Those of the runtime are not quite the same every time, so a
// run whose kill did not hit is made again.
//
// # What strace does, and what follows from it
//
//   - -P PATH matches a path argument literally, and a descriptor by what it is open on. A call relative to a directory's
//     descriptor matches by the directory, not by the name. So Run.State must name the directory as well as each file;
//     with both, nothing is missed but the reopening of a descriptor through /proc/self/fd, which changes nothing unless it
//     truncates.
//   - The counter of an injection counts the calls that -P matches, per name of call and per thread. So the program has to
//     make its calls on the state from one thread. A test binary that imports this package and is itself the program
//     keeps its main goroutine on its main thread when it is started by Kill or Calls; another program has to see to it
//     when MainThreadEnv is set. Calls from two threads are an error.
//   - --seccomp-bpf would be faster, but a signal that is injected then is lost without a word. Whether each kill hit is
//     checked anyway.
package crash

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"holdfast/internal/testkit"
)

// MainThreadEnv is set in the environment of a traced program, which then has to make its calls from one thread.
const MainThreadEnv = "HOLDFAST_CRASH_MAIN_THREAD"

func init() {
	if os.Getenv(MainThreadEnv) != "" {
		runtime.LockOSThread()
	}
}

// Run is a program to be killed, and the state it works on.
type Run struct {
	Path  string   // the program; looked up in PATH if it has no slash
	Args  []string // its arguments, without its name
	Env   []string // nil: this process's
	Dir   string   // its work directory; empty: this process's
	State []string // absolute paths: the state's directory, and every file that may be in it

	// Under takes the place of State where names in the state cannot be known before: absolute paths of directories, symlinks
	// resolved. Listed are the calls that may change what a crash leaves on anything at or below them; the work directory lies
	// elsewhere.
	Under  []string
	Beside bool // with Under: other threads and processes may make such calls as well, which are not listed
}

// Exit is the name of the Call that stands for the end of a run that was not killed.
const Exit = "exit"

// Call is one system call on the state.
type Call struct {
	Name string // of the system call, such as renameat2
	K    int    // it is the run's K-th call of that name, from 1
	Line string // as strace printed it in the traced run, with the paths of descriptors

	index int // it is the run's index-th call of any name, from 0
	ahead int // so many calls of that name which are not listed came before it, on its thread
}

func (c Call) String() string { return fmt.Sprintf("%s-%d", c.Name, c.K) }

// Scene is a state that was set up, with the run that is to be killed on it.
type Scene struct {
	Run
	Check func(t testing.TB, at Call) // examines the state after the kill
}

// parallel is how many runs are under way at once.
const parallel = 2

// AtEveryCall kills a run at each of its calls on the state, in a subtest for each. stage sets the initial state up anew,
// in a directory of its own, every time it is called; several scenes are in use at once. The traced run must succeed
// and is checked as well, as Exit. The test fails if a run made no calls, or was not killed where it should have been.
func AtEveryCall(t *testing.T, stage func(t testing.TB) Scene) {
	t.Helper()
	killAt(t, stage, func(Call) bool { return true })
}

// AtEveryChange is AtEveryCall without the calls that only look. A kill at one of those leaves what the kill at the next
// other call leaves, so this loses nothing but the proof of that. It is for when time is short.
func AtEveryChange(t *testing.T, stage func(t testing.TB) Scene) {
	t.Helper()
	killAt(t, stage, Call.changes)
}

// AtChanges is AtEveryChange at those calls alone that are picked as well.
func AtChanges(t *testing.T, picked func(Call) bool, stage func(t testing.TB) Scene) {
	t.Helper()
	killAt(t, stage, func(c Call) bool { return c.changes() && picked(c) })
}

// AtEveryName is AtEveryChange at those calls alone that make, take or change a name. What lies between two of them is in one
// file's content or mode. It is for when time is shorter still.
func AtEveryName(t *testing.T, stage func(t testing.TB) Scene) {
	t.Helper()
	killAt(t, stage, func(c Call) bool { return c.changes() && naming.MatchString(c.Name) })
}

// AtEveryWrite is AtEveryName and the calls that fill a file: one that is there and empty is a state of its own where a file is
// not published whole.
func AtEveryWrite(t *testing.T, stage func(t testing.TB) Scene) {
	t.Helper()
	killAt(t, stage, func(c Call) bool { return c.changes() && (naming.MatchString(c.Name) || c.Name == "write") })
}

var naming = regexp.MustCompile(`^(open|creat|rename|unlink|link|symlink|mkdir|rmdir)`)

func killAt(t *testing.T, stage func(t testing.TB) Scene, picked func(Call) bool) {
	t.Helper()
	whole := stage(t)
	calls := Calls(t, whole.Run)
	t.Run(Exit, func(t *testing.T) { whole.Check(t, Call{Name: Exit, K: 1, index: len(calls)}) })

	queue := make(chan Call)
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for c := range queue {
				t.Run(c.String(), func(t *testing.T) {
					scene := KillStaged(t, stage, c)
					defer func() {
						if t.Failed() {
							t.Logf("killed at %s", c.Line)
						}
					}()
					scene.Check(t, c)
				})
			}
		})
	}
	for _, c := range calls {
		if picked(c) {
			queue <- c
		}
	}
	close(queue)
	workers.Wait()
}

// misses is how often a kill that is counted among all calls may miss.
const misses = 5

// KillStaged stages a scene and kills its run at the call, which Calls found in a run like it.
func KillStaged(t testing.TB, stage func(t testing.TB) Scene, c Call) Scene {
	t.Helper()
	for n := 0; ; n++ {
		scene := stage(t)
		err := kill(scene.Run, c)
		if err == nil {
			return scene
		}
		if len(scene.Under) == 0 || n == misses {
			t.Fatal(err)
		}
	}
}

// looks are the calls that change neither a file nor a lock. A close may release one.
var looks = []string{
	"access", "faccessat", "faccessat2", "fcntl", "fstat", "fstatfs", "getdents64", "lseek", "lstat", "newfstatat", "pread64",
	"read", "readlink", "readlinkat", "readv", "preadv", "stat", "statfs", "statx",
}

// passing are calls whose kill leaves what the kill at the next one leaves, for the end of a process closes all that it has
// open.
var passing = []string{"close", "dup", "dup2", "dup3", "epoll_ctl", "epoll_pwait", "ioctl", "execve", "chdir", "close_range"}

// changes reports whether the call may change what a crash leaves.
func (c Call) changes() bool {
	if c.Name == "open" || c.Name == "openat" || c.Name == "openat2" {
		return strings.Contains(c.Line, "O_CREAT") || strings.Contains(c.Line, "O_TRUNC")
	}
	return !slices.Contains(looks, c.Name)
}

// Calls makes the run once, to a successful end, and returns its calls on the state in order; there is at least one.
func Calls(t testing.TB, r Run) []Call {
	t.Helper()
	testkit.NeedTool(t, "strace")
	calls, err := list(r)
	if err != nil {
		t.Fatal(err)
	}
	return calls
}

// Kill makes the run and kills it at the call, which Calls found in a run like it.
func Kill(t testing.TB, r Run, at Call) {
	t.Helper()
	testkit.NeedTool(t, "strace")
	if err := kill(r, at); err != nil {
		t.Fatal(err)
	}
}
