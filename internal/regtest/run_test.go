//go:build linux

package regtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
	"holdfast/internal/testkit/pty"
)

// ask makes one request on a connection of its own.
func ask(endpoint string) (string, error) {
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Get(endpoint)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	return string(b), err
}

// serves checks that the root's service answers with its epoch.
func (r *running) serves(root string) object {
	r.Helper()
	found := r.access(root)
	if epoch, err := ask(found.Endpoint); err != nil || epoch != found.Epoch {
		r.Errorf("the service at %s answers %q, %v: %s", found.Endpoint, epoch, err, r.errors())
	}
	return found
}

// released checks that nothing of the root's service is left.
func (s *scene) released(root string) {
	s.Helper()
	if in := s.inspect(root); in.Code != "stopped" || in.Fenced {
		s.Errorf("the root is %+v", in)
	}
	if left := s.names(filepath.Join("roots", filepath.Base(s.in(root)))); left != "config.json format.json registration.json" {
		s.Errorf("left: %s", left)
	}
	if left := s.names("receipts") + s.names("stage"); left != "" {
		s.Errorf("left: %s", left)
	}
}

// A service that is handed its socket is reached by whoever knows the endpoint, already before it begins to serve; its status
// is the wrapper's, alone and inside the other wrappers.
func TestAServiceIsHandedItsSocket(t *testing.T) {
	for name, outer := range map[string][]string{
		"alone":             nil,
		"inside the others": {"leasectl", "run", "--", "fencectl", "run", "--dir", "session", "--create", "--"},
	} {
		for kind, inner := range map[string][]string{
			"a socket": {"--", "service"},
			"a port":   {"--no-listen", "--", "service", "{port}"},
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				s := newScene(t)
				s.root("a")
				argv := append(append(append([]string{}, outer...), "regctl", "run", "--root", "a", "--endpoint", "http://127.0.0.1:0"), inner...)
				var env []string
				if kind == "a socket" {
					env = []string{"SERVE_AFTER=200ms"}
				}
				r := s.start(env, argv...)
				found := r.access("a")
				if kind == "a port" {
					testkit.Eventually(t, "the service listens", func() bool {
						_, err := ask(found.Endpoint)
						return err == nil
					})
				}
				if again := r.serves("a"); again.Epoch != found.Epoch {
					t.Errorf("found %+v, then %+v", found, again)
				}
				if in := s.inspect("a"); in.Code != "idle" || in.Verdict != "live" {
					t.Errorf("the root is %+v", in)
				}
				r.signal(unix.SIGTERM)
				if status := r.end(); status != serviceStatus {
					t.Errorf("status %d: %s", status, r.errors())
				}
				s.released("a")
				if left := s.mark.Processes(); len(left) > 0 {
					t.Errorf("%d processes are left", len(left))
				}
			})
		}
	}
}

// Two thousand requests, each on a connection of its own, while the wrapper gets SIGTERM: those that began before the phase was
// stopping are all answered.
func TestNoRequestIsLostBeforeTheServiceIsStopping(t *testing.T) {
	const requests, clients = 2000, 16
	s := newScene(t)
	s.root("a")
	r := s.start([]string{"DRAINED=" + s.path("drained")}, "regctl", "run", "--root", "a", "--endpoint", "http://127.0.0.1:0", "--", "service")
	found := r.access("a")

	var began, answered, afterwards atomic.Int64
	var stopping atomic.Int64 // when the phase became that, by the clock of the files; 0 before
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			if at, ok := s.stoppingAt("a"); ok {
				stopping.Store(at.UnixNano())
				return
			}
		}
		t.Error("the phase has not become stopping")
	}()
	var lost sync.Map
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for {
				n := began.Add(1)
				if n > requests {
					return
				}
				if n == requests/2 {
					_ = r.cmd.Process.Signal(unix.SIGTERM)
				}
				if n > requests*3/4 { // the last quarter comes for certain when the service is stopping
					<-seen
				}
				at := time.Now()
				epoch, err := ask(found.Endpoint)
				switch {
				case err == nil && epoch == found.Epoch:
					answered.Add(1)
				case stopping.Load() == 0 || at.UnixNano() < stopping.Load():
					lost.Store(at, fmt.Errorf("%q, %w", epoch, err))
				default:
					afterwards.Add(1)
				}
				if n == requests*7/8 {
					if err := os.WriteFile(s.path("drained"), nil, 0o600); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	lost.Range(func(at, err any) bool {
		t.Errorf("a request of %v was lost: %v", at, err)
		return true
	})
	if status := r.end(); status != serviceStatus {
		t.Errorf("status %d: %s", status, r.errors())
	}
	t.Logf("%d were answered, %d came when the service was stopping and found it gone", answered.Load(), afterwards.Load())
	if answered.Load() < requests*3/4-1 {
		t.Errorf("%d of %d requests were answered", answered.Load(), requests)
	}
	s.released("a")
}

// stoppingAt is when the phase became stopping, not later than it did.
func (s *scene) stoppingAt(root string) (time.Time, bool) {
	f, err := os.Open(s.in(root, "registration.json"))
	if err != nil {
		return time.Time{}, false
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	st, statErr := f.Stat()
	var r struct{ Phase string }
	if errors.Join(err, statErr, json.Unmarshal(b, &r)) != nil {
		return time.Time{}, false
	}
	return st.ModTime(), r.Phase == "stopping"
}

// A wrapper that is killed takes its command along; what it registered is recovered, and the root and the endpoint serve again.
func TestAKilledWrapperIsRecovered(t *testing.T) {
	s := newScene(t)
	s.root("a")
	argv := []string{"regctl", "run", "--root", "a", "--endpoint", "http://127.0.0.1:0", "--", "service"}
	r := s.start(nil, argv...)
	found := r.serves("a")
	r.signal(unix.SIGKILL)
	r.end()
	testkit.Eventually(t, "the command has died", func() bool {
		in := s.inspect("a")
		return in.Code == "idle" && in.Verdict == "dead" && len(s.mark.Processes()) == 0
	})
	if a := s.regctl("run", "--root", "a", "--endpoint", "http://127.0.0.1:0", "-E", "9", "--", "touch", "started"); a.status != 9 {
		t.Errorf("status %d: %s", a.status, a.errs)
	}
	snapshot := s.expect(0, "snapshot", "recover", "snapshot", "--root", "a")
	if !strings.HasSuffix(snapshot.Remedy, snapshot.Digest) || snapshot.Verdict != "dead" {
		t.Errorf("%+v", snapshot)
	}
	s.expect(0, "recovered", "recover", "release", "--root", "a", "--expected", snapshot.Digest)
	if _, err := os.Lstat(s.path("started")); err == nil {
		t.Error("the refused command was started")
	}
	again := s.start(nil, argv...)
	if new := again.serves("a"); new.Epoch == found.Epoch {
		t.Errorf("the epoch is the old one: %+v", new)
	}
	again.signal(unix.SIGTERM)
	if status := again.end(); status != serviceStatus {
		t.Errorf("status %d: %s", status, again.errors())
	}
}

// An endpoint at which another program listens, on whichever address that reaches it, is a conflict, and nothing is started or
// registered.
func TestAForeignListenerIsAConflict(t *testing.T) {
	for name, c := range map[string]struct{ listen, endpoint string }{
		"there":                {"127.0.0.1:0", "http://127.0.0.1:"},
		"at every address":     {"0.0.0.0:0", "http://127.0.0.1:"},
		"at the other version": {"[::1]:0", "http://[::1]:"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.root("a")
			l, err := net.Listen("tcp", c.listen)
			s.must(err)
			defer l.Close()
			endpoint := c.endpoint + strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
			for _, more := range [][]string{{}, {"--no-listen"}} {
				a := s.regctl(append(append([]string{"run", "--root", "a", "--endpoint", endpoint, "-E", "9"}, more...), "--", "touch", "started")...)
				if a.status != 9 || !strings.Contains(a.errs, `"code":"conflict"`) || !strings.Contains(a.errs, "\nregctl: "+endpoint+" is in use: another program listens there (") {
					t.Errorf("status %d: %s", a.status, a.errs)
				}
			}
			if _, err := os.Lstat(s.path("started")); err == nil {
				t.Error("the command was started")
			}
			if _, err := os.Lstat(s.home()); err == nil {
				t.Error("there is a state home")
			}
		})
	}
}

// Ctrl-C reaches the command once, as without the wrapper, which waits for it and releases.
func TestCtrlCReachesTheCommandOnce(t *testing.T) {
	s := newScene(t)
	s.root("a")
	cmd := s.command("regctl", "run", "--root", "a", "--endpoint", "http://127.0.0.1:0", "--",
		"sh", "-c", `trap 'echo got one; n=x$n' INT; echo ready; until test "$n"; do sleep 0.05; done; sleep 1; echo "all $n"; exit 3`)
	terminal := pty.Start(t, cmd, 24, 80)
	terminal.Expect("ready")
	terminal.Send(pty.CtrlC)
	terminal.Expect("all x\r")
	if status := terminal.Wait(); status != 3 {
		t.Errorf("status %d: %s", status, terminal.All())
	}
	s.released("a")
}
