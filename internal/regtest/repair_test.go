//go:build linux

package regtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/internal/testkit"
	"holdfast/pkg/claim"
	"holdfast/pkg/procid"
	"holdfast/pkg/regfile"
)

// retain leaves a registry lock behind, as an operation that stopped in the middle does; op is empty for one that was cut off
// before it said what it is.
func (s *scene) retain(op, root string) {
	s.Helper()
	if op == "" {
		s.must(os.WriteFile(s.home("registry", "registry.lock"), nil, 0o600))
		return
	}
	d, err := regfile.OpenDir(s.home("registry"))
	s.must(err)
	defer d.Close()
	self, err := procid.Self()
	s.must(err)
	held, err := claim.Enter(context.Background(), d, "registry.lock", claim.Who{Tool: "regctl", Op: op, Root: root, Token: "t", Self: self}, patience)
	s.must(err)
	held.Keep()
}

// cutOffRelease leaves a root as a release does that was cut off after its commit point.
func (s *scene) cutOffRelease(root, port string) {
	s.Helper()
	s.acquire(root, port, os.Getpid())
	s.edit(s.in(root, "registration.json"), func(text string) string {
		return strings.Replace(text, `"phase":"idle"`, `"phase":"stopped"`, 1)
	})
	s.retain("release", s.path(root))
}

// plan is the plan of a repair: its digest, and its steps in short.
func (s *scene) plan() (digest, steps string) {
	s.Helper()
	a := s.regctl("repair")
	if a.status != 0 {
		s.Fatalf("no plan: %+v %s", a.objects, a.errs)
	}
	return a.last().Digest, brief(a)
}

func brief(a answer) string {
	var steps []string
	for _, o := range a.objects[:len(a.objects)-1] {
		steps = append(steps, o.Action+" "+filepath.Base(o.Path))
	}
	return strings.Join(steps, ", ")
}

const releaseSteps = "rewrite roots.json, move local-capability.json, move owner.lock, move checkout.lock, unlock registry.lock"

// A plan serves for exactly the state that it was made on: of the registry, and of all files of the roots that it is about.
func TestAPlanThatAnythingHasMadeStaleIsRefused(t *testing.T) {
	const other = "registry"
	changes := map[string]func(s *scene, path string){
		"touched": func(s *scene, path string) { s.must(os.Chtimes(path, time.Time{}, time.Now().Add(-time.Hour))) },
		"white space": func(s *scene, path string) {
			s.edit(path, func(text string) string { return text + "\n" })
		},
		"a copy put back": func(s *scene, path string) {
			b, err := os.ReadFile(path)
			s.must(err)
			s.must(os.Rename(path, s.path("away")))
			s.must(os.WriteFile(path, b, 0o600))
		},
	}
	for what, change := range changes {
		t.Run(what, func(t *testing.T) {
			for _, file := range []string{
				"registration.json", "config.json", "format.json", "owner.lock", "local-capability.json", "checkout.lock",
				"roots.json in " + other, "format.json in " + other, "registry.lock in " + other,
			} {
				if strings.HasPrefix(file, "registry.lock") && what != "white space" {
					continue // that lock is told by what is in it
				}
				t.Run(file, func(t *testing.T) {
					s := newScene(t)
					s.cutOffRelease("a", "4100")
					digest, steps := s.plan()
					if steps != releaseSteps {
						t.Fatalf("the plan: %s", steps)
					}
					name, _, inRegistry := strings.Cut(file, " in ")
					path := s.in("a", name)
					if inRegistry {
						path = s.home(other, name)
					}
					change(s, path)
					before, err := testkit.Listing(s.home())
					s.must(err)
					s.stale(digest)
					if now, err := testkit.Listing(s.home()); err != nil || now != before {
						t.Errorf("%v: a refused repair has changed\n%s\nto\n%s", err, before, now)
					}
				})
			}
		})
	}
}

// stale applies a plan, which must be refused.
func (s *scene) stale(digest string) {
	s.Helper()
	a := s.regctl("repair", "--apply", "--expected", digest)
	if code := a.last().Code; a.status == 0 || code != "conflict" && code != "uncertain" {
		s.Errorf("status %d and %+v", a.status, a.objects)
	}
}

// What is left that no operation leaves: the lock stays while that is what the operation was about, or may be; what is in order is
// put in order all the same, and what was wrong before has no part in it.
func TestTheLockStaysWhileItsOperationCannotBePutInOrder(t *testing.T) {
	for name, c := range map[string]struct {
		op, root string // of the lock
		plan     string
		stays    bool
	}{
		"its root":          {"acquire", "broken", "leave broken, leave registry.lock", true},
		"another root":      {"acquire", "fine", "leave broken, unlock registry.lock", false},
		"it does not say":   {"", "", "leave broken, leave registry.lock", true},
		"it says no root":   {"repair", "", "leave broken, leave registry.lock", true},
		"a root without it": {"init", "gone", "leave broken, unlock registry.lock", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.acquire("broken", "4100", os.Getpid())
			s.acquire("fine", "4101", os.Getpid())
			s.must(os.Remove(s.in("broken", "owner.lock")))
			root := ""
			if c.root != "" {
				root = s.path(c.root)
			}
			s.retain(c.op, root)
			digest, steps := s.plan()
			if steps = strings.ReplaceAll(steps, filepath.Base(s.in("broken")), "broken"); steps != c.plan {
				t.Errorf("the plan: %s, want %s", steps, c.plan)
			}
			before, err := testkit.Listing(s.home("roots"))
			s.must(err)
			s.expect(0, "repaired", "repair", "--apply", "--expected", digest)
			if now, err := testkit.Listing(s.home("roots")); err != nil || now != before {
				t.Errorf("%v: it has changed\n%s\nto\n%s", err, before, now)
			}
			if in := s.inspect("fine"); in.Code != "idle" || in.Fenced != c.stays {
				t.Errorf("the other root: %+v", in)
			}
			if in := s.inspect("broken"); in.Code != "uncertain" || !strings.Contains(in.Reason, "owner.lock") {
				t.Errorf("the root: %+v", in)
			}
		})
	}
}

// A checkout lock that is not the service's own is an older writer's: it stays where it is, byte for byte, and holds up nothing.
func TestAnOlderWritersLockIsNeverMoved(t *testing.T) {
	lock := func(token string, pid int, key, host string) string {
		return fmt.Sprintf(`{"token":"%s","pid":%d,"startKey":"%s","host":"%s","since":"2026-01-02T03:04:05.000Z"}`+"\n", token, pid, key, host)
	}
	const token = "5a1c0d3e-3333-4a0c-9d8e-2f6b1f0f4a33"
	self, err := procid.Self()
	if err != nil {
		t.Fatal(err)
	}
	foreign := lock(token, self.PID+1, self.StartKey, self.Hostname)
	for name, c := range map[string]struct {
		content string
		stage   func(s *scene)
		plan    string
		state   string
	}{
		"taken in the middle of an acquire": {foreign, func(s *scene) {
			for _, name := range []string{"registration.json", "owner.lock", "local-capability.json"} {
				s.must(os.Remove(s.in("a", name)))
			}
			s.retain("acquire", s.path("a"))
		}, "leave checkout.lock, rewrite roots.json, unlock registry.lock", "stopped"},
		"taken by the same process when the release was all but done": {lock(token, self.PID, self.StartKey, self.Hostname), func(s *scene) {
			_, err := s.open().Release(context.Background(), s.path("a.receipt"))
			s.must(err)
			s.retain("release", s.path("a"))
		}, "leave checkout.lock, unlock registry.lock", "uncertain"},
		"alone": {foreign, func(s *scene) {
			_, err := s.open().Release(context.Background(), s.path("a.receipt"))
			s.must(err)
			s.must(os.Remove(s.in("a", "registration.json")))
		}, "leave checkout.lock", "stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.acquire("a", "4100", self.PID)
			c.stage(s)
			s.must(os.WriteFile(s.in("a", "checkout.lock"), []byte(c.content), 0o600))
			before, err := os.Lstat(s.in("a", "checkout.lock"))
			s.must(err)
			digest, steps := s.plan()
			if steps != c.plan {
				t.Errorf("the plan: %s, want %s", steps, c.plan)
			}
			s.expect(0, "repaired", "repair", "--apply", "--expected", digest)
			now, err := os.Lstat(s.in("a", "checkout.lock"))
			if b, _ := os.ReadFile(s.in("a", "checkout.lock")); err != nil || !os.SameFile(before, now) || string(b) != c.content {
				t.Errorf("%v: the older writer's lock is %q", err, b)
			}
			if in := s.inspect("a"); in.Code != c.state || in.Fenced {
				t.Errorf("the root: %+v", in)
			}
		})
	}
}

// Whatever makes a root uncertain is said, where no operation leaves it too: that is where every refusal sends its reader.
func TestAPlanSaysWhyARootIsUncertain(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(s *scene)
		why   string
	}{
		"a policy that was edited": {func(s *scene) {
			s.must(os.WriteFile(s.in("a", "host-config.json"), []byte("{}\n"), 0o600))
		}, "host-config.json"},
		"a stray file":      {func(s *scene) { s.must(os.WriteFile(s.in("a", "notes"), nil, 0o600)) }, "notes does not belong"},
		"an open directory": {func(s *scene) { s.must(os.Chmod(s.in("a"), 0o755)) }, "has mode 0755"},
		"another's format": {func(s *scene) {
			s.edit(s.in("a", "format.json"), func(text string) string { return strings.Replace(text, s.path("a"), s.path("b"), 1) })
		}, "another root"},
		"no row": {func(s *scene) {
			s.edit(s.home("registry", "roots.json"), func(string) string { return `{"schema":"holdfast-registry/1","entries":[]}` + "\n" })
		}, "has no row"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.acquire("a", "4100", os.Getpid())
			c.spoil(s)
			if in := s.inspect("a"); in.Code != "uncertain" {
				t.Fatalf("the root: %+v", in)
			}
			a := s.regctl("repair")
			if len(a.objects) != 2 || a.objects[0].Action != "leave" || a.objects[0].Path != s.in("a") || !strings.Contains(a.objects[0].Why, c.why) || a.last().Remedy != "" {
				t.Errorf("the plan: %+v %s", a.objects, a.errs)
			}
		})
	}
}

// A registry in which there is something else is refused before anything is done.
func TestAStrangerInTheRegistryIsNamed(t *testing.T) {
	s := newScene(t)
	s.cutOffRelease("a", "4100")
	s.must(os.WriteFile(s.home("registry", "notes"), nil, 0o600))
	if o := s.expect(65, "uncertain", "repair"); !strings.Contains(o.Reason, "notes") || !strings.HasPrefix(o.Remedy, "none is safe") {
		t.Errorf("%+v", o)
	}
	if in := s.inspect("a"); !in.Fenced {
		t.Errorf("the lock is gone: %+v", in)
	}
}

// Two operators with one plan: one of them does it.
func TestTwoOperatorsRepairAtOnce(t *testing.T) {
	s := newScene(t)
	s.cutOffRelease("a", "4100")
	digest, _ := s.plan()
	const operators = 8
	answers := make([]answer, operators)
	errs := make([]error, operators)
	var all sync.WaitGroup
	for i := range operators {
		all.Go(func() { answers[i], errs[i] = s.call("repair", "--apply", "--expected", digest) })
	}
	all.Wait()
	done := 0
	for i, a := range answers {
		s.must(errs[i])
		switch code := a.last().Code; {
		case a.status == 0 && code == "repaired" && brief(a) == releaseSteps:
			done++
		case a.status == 1 && code == "conflict", a.status == 75 && code == "unavailable":
		default:
			t.Errorf("status %d and %+v: %s", a.status, a.objects, a.errs)
		}
	}
	if done != 1 {
		t.Errorf("%d of them did it", done)
	}
	if broken := strings.Fields(s.names("broken")); len(broken) != 4 {
		t.Errorf("moved away: %q", broken)
	}
	if in := s.inspect("a"); in.Code != "stopped" || in.Fenced {
		t.Errorf("%+v", in)
	}
}

// Two operations that were cut off, which takes somebody who removed a lock by hand, are put in order by one plan, without a lock
// as well.
func TestOnePlanForTwoRoots(t *testing.T) {
	for name, locked := range map[string]bool{"with the lock": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			want := ""
			for _, root := range []string{"a", "b"} {
				s.cutOffRelease(root, map[string]string{"a": "4100", "b": "4101"}[root])
				if root == "a" || !locked {
					s.must(os.Remove(s.home("registry", "registry.lock")))
				}
				want += strings.TrimSuffix(releaseSteps, "unlock registry.lock")
			}
			if want = strings.TrimSuffix(want, ", "); locked {
				want += ", unlock registry.lock"
			}
			digest, steps := s.plan()
			if steps != want {
				t.Fatalf("the plan: %s, want %s", steps, want)
			}
			s.expect(0, "repaired", "repair", "--apply", "--expected", digest)
			for _, root := range []string{"a", "b"} {
				if in := s.inspect(root); in.Code != "stopped" || in.Fenced {
					t.Errorf("%s: %+v", root, in)
				}
			}
			s.expect(0, "repaired", "repair", "--apply", "--expected", s.expect(0, "plan", "repair").Digest)
		})
	}
}
