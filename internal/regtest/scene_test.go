//go:build linux

package regtest

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
	"holdfast/pkg/procid"
	"holdfast/pkg/registry"
)

// patience is how long anything may take: the machine may be busy.
const patience = 60 * time.Second

// scene is a state home with roots beside it.
type scene struct {
	*testing.T
	dir  string // physical
	mark testkit.Mark
}

func newScene(t *testing.T) *scene {
	t.Helper()
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	s := &scene{T: t, dir: dir, mark: testkit.NewMark(t)}
	s.must(err)
	return s
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scene) path(names ...string) string {
	return filepath.Join(append([]string{s.dir}, names...)...)
}

// home is the path of a file in the state home.
func (s *scene) home(names ...string) string {
	return filepath.Join(append([]string{s.dir, "home"}, names...)...)
}

// root makes a root directory, unless it is there, and returns its path.
func (s *scene) root(name string) string {
	s.Helper()
	s.must(os.MkdirAll(s.path(name), 0o755))
	return s.path(name)
}

// in is the path of a file in a root's directory of the state home.
func (s *scene) in(root string, names ...string) string {
	return s.home(append([]string{"roots", registry.RootID(s.path(root))}, names...)...)
}

func (s *scene) open() *registry.Home {
	s.Helper()
	h, err := registry.Open(s.home(), registry.Options{Tool: "regtest"})
	s.must(err)
	s.Cleanup(func() { h.Close() })
	return h
}

// acquire registers a root for a process; its receipt is ROOT.receipt.
func (s *scene) acquire(root, port string, pid int) *registry.Acquired {
	s.Helper()
	owner, err := procid.Of(pid)
	s.must(err)
	a, err := s.open().Acquire(context.Background(), registry.Acquire{
		Root: s.root(root), Requested: "http://127.0.0.1:0", Bound: "http://127.0.0.1:" + port, Owner: owner, Receipt: s.path(root + ".receipt"),
	})
	s.must(err)
	return a
}

// command is a program in the scene, which is killed with the test.
func (s *scene) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "HOLDFAST_STATE_HOME="+s.home(), string(s.mark))
	return cmd
}

// object is what a verb printed, one of them.
type object struct {
	Code, Phase, Verdict, Reason, Path, Root, Endpoint, Epoch, Digest, Remedy string
	Action, Why, MovedTo                                                      string
	Fenced                                                                    bool
	Steps                                                                     int
}

// answer is a verb's end.
type answer struct {
	status  int
	objects []object
	errs    string
}

func (a answer) last() object {
	if len(a.objects) == 0 {
		return object{}
	}
	return a.objects[len(a.objects)-1]
}

// regctl runs a verb to its end.
func (s *scene) regctl(args ...string) answer {
	s.Helper()
	a, err := s.call(args...)
	s.must(err)
	return a
}

// call is regctl for any goroutine.
func (s *scene) call(args ...string) (answer, error) {
	cmd := s.command("regctl", args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		return answer{}, err
	}
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Wait()
	a := answer{status: testkit.StatusOf(cmd.ProcessState), errs: stderr.String()}
	for dec := json.NewDecoder(&stdout); dec.More(); {
		var o object
		if err := dec.Decode(&o); err != nil {
			return a, err
		}
		a.objects = append(a.objects, o)
	}
	return a, nil
}

// expect runs a verb that must end with that status and, in its last object, that code.
func (s *scene) expect(status int, code string, args ...string) object {
	s.Helper()
	a := s.regctl(args...)
	if a.status != status || a.last().Code != code {
		s.Fatalf("regctl %q: status %d and %+v, want %d and %s\n%s", args, a.status, a.objects, status, code, a.errs)
	}
	return a.last()
}

// running is a wrapper that was started.
type running struct {
	*scene
	cmd    *exec.Cmd
	ended  chan struct{}
	stderr string // path
}

// start starts a wrapper, in a group of its own and without a terminal.
func (s *scene) start(env []string, argv ...string) *running {
	s.Helper()
	cmd := s.command(argv[0], argv[1:]...)
	cmd.Env = append(cmd.Env, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	r := &running{scene: s, cmd: cmd, ended: make(chan struct{}), stderr: s.path("stderr")}
	errs, err := os.Create(r.stderr)
	s.must(err)
	cmd.Stderr = errs
	runtime.LockOSThread() // whose end the parent-death signal would tell of
	s.must(cmd.Start())
	s.must(errs.Close())
	go func() {
		_ = cmd.Wait()
		close(r.ended)
	}()
	s.Cleanup(func() { _ = cmd.Process.Kill() })
	return r
}

// end waits for the wrapper's end and returns its status.
func (r *running) end() int {
	r.Helper()
	select {
	case <-r.ended:
	case <-time.After(patience):
		r.Fatalf("the wrapper still runs: %s", r.errors())
	}
	return testkit.StatusOf(r.cmd.ProcessState)
}

func (r *running) errors() string {
	b, _ := os.ReadFile(r.stderr)
	return string(b)
}

func (r *running) signal(sig unix.Signal) { r.Helper(); r.must(unix.Kill(r.cmd.Process.Pid, sig)) }

// access waits until clients can find the root's service.
func (r *running) access(root string) object {
	r.Helper()
	var found answer
	testkit.Eventually(r, "the service can be found", func() bool {
		select {
		case <-r.ended:
			r.Fatalf("the wrapper has ended: %s", r.errors())
		default:
		}
		found = r.regctl("access", "--root", r.path(root))
		return found.status == 0
	})
	return found.last()
}

// inspect is what is known of a root.
func (s *scene) inspect(root string) object {
	s.Helper()
	return s.regctl("inspect", "--root", s.path(root)).last()
}

// edit changes a file in its place, as an editor that keeps the mode does.
func (s *scene) edit(path string, change func(string) string) {
	s.Helper()
	b, err := os.ReadFile(path)
	s.must(err)
	s.must(os.WriteFile(path, []byte(change(string(b))), 0o600))
}

// names are the names in a directory of the state home.
func (s *scene) names(dir string) string {
	entries, err := os.ReadDir(s.home(dir))
	if err != nil {
		return err.Error()
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}
