//go:build linux

package holdfast_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit/fusekit"
)

// counted is a hook that counts the operations on a lease's files, by what was done and to what.
type counted struct {
	mu   sync.Mutex
	seen map[string]int
}

func (c *counted) hook(op fusekit.Op, name string) syscall.Errno {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[string]int{}
	}
	c.seen[string(op)+" "+strings.TrimPrefix(name, "orchestrator.")]++
	return 0
}

func (c *counted) times(op fusekit.Op, name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[string(op)+" "+name]
}

// poorFilesystems lack what publishing a file without replacing one needs: either half of it, or both.
var poorFilesystems = []struct {
	name string
	opts fusekit.Options
}{
	{"neither links nor rename flags", fusekit.Options{Link: syscall.EPERM, RenameFlags: syscall.EINVAL}},
	{"links are not supported", fusekit.Options{Link: syscall.EOPNOTSUPP, RenameFlags: syscall.ENOSYS}},
	{"links but no rename flags", fusekit.Options{RenameFlags: syscall.EINVAL}},
	{"no kernel locks", fusekit.Options{Lock: syscall.EOPNOTSUPP}},
	{"no lock daemon", fusekit.Options{Lock: syscall.ENOLCK}},
	{"nothing at all", fusekit.Options{Link: syscall.EPERM, RenameFlags: syscall.EINVAL, Lock: syscall.ENOSYS}},
}

// TestPoorFilesystemServes takes a lease through its whole life where the kernel offers little.
func TestPoorFilesystemServes(t *testing.T) {
	for _, poor := range poorFilesystems {
		t.Run(poor.name, func(t *testing.T) {
			t.Parallel()
			var ops counted
			opts := poor.opts
			opts.Hook = ops.hook
			disk := fusekit.Mount(t, opts)
			lock := filepath.Join(disk.Backing, "state", "orchestrator.lock")

			first := ask(t, disk.Dir, "leasectl", "acquire").is(0, "acquired").has("lease.fence", "1")
			holder := first.text("lease.holderId")
			nothingLeft(t, lock)
			for op, wanted := range map[fusekit.Op]bool{ // how the lease got its name
				fusekit.Link:   opts.RenameFlags != 0,
				fusekit.Rename: opts.RenameFlags != 0 && opts.Link != 0,
			} {
				if n := ops.times(op, "lock"); (n > 0) != wanted {
					t.Errorf("%d times %s", n, op)
				}
			}
			ask(t, disk.Dir, "leasectl", "acquire").is(1, "held")
			ask(t, disk.Dir, "leasectl", "renew", "--holder", holder).is(0, "renewed")
			ask(t, disk.Dir, "leasectl", "verify", "--holder", holder, "--fence", "1").is(0, "holds")
			ask(t, disk.Dir, "leasectl", "release", "--holder", holder).is(0, "released")
			must(t, os.WriteFile(lock, []byte(expiredLease()), 0o644))
			ask(t, disk.Dir, "leasectl", "acquire").is(1, "expired")
			ask(t, disk.Dir, "leasectl", "acquire", "--take-over").is(0, "acquired").has("lease.fence", fmt.Sprint(plantedFence+1))
			must(t, os.WriteFile(lock, []byte("{"), 0o644))
			ask(t, disk.Dir, "leasectl", "status").is(65, "corrupt").follow(disk.Dir).is(0, "set-aside")
			ask(t, disk.Dir, "leasectl", "acquire").is(0, "acquired").has("lease.fence", fmt.Sprint(plantedFence+2))
			nothingLeft(t, lock)
		})
	}
}

// TestPoorFilesystemReplacesNothingThatAppeared: a program that takes no claim puts a lease there just before ours would
// get its name. Where nothing refuses an existing name, a look does.
func TestPoorFilesystemReplacesNothingThatAppeared(t *testing.T) {
	for _, poor := range poorFilesystems[:3] {
		t.Run(poor.name, func(t *testing.T) {
			t.Parallel()
			var lock atomic.Pointer[string]
			appeared := heldLease()
			opts := poor.opts
			opts.Hook = func(op fusekit.Op, name string) syscall.Errno {
				if op == fusekit.Link && name == "orchestrator.lock" {
					_ = os.WriteFile(*lock.Load(), []byte(appeared), 0o644)
				}
				return 0
			}
			disk := fusekit.Mount(t, opts)
			path := plantFleet(t, disk.Backing, "")
			lock.Store(&path)
			ask(t, disk.Dir, "leasectl", "acquire").is(1, "changed").has("lease.holderId", plantedHolder, "written", "")
			if got, err := os.ReadFile(path); err != nil || string(got) != appeared {
				t.Errorf("the lease is now %q (%v)", got, err)
			}
			nothingLeft(t, path)
		})
	}
}

// TestPoorFilesystemHasOneWinner lets contenders race where nothing but the claim keeps them apart.
func TestPoorFilesystemHasOneWinner(t *testing.T) {
	for _, poor := range poorFilesystems {
		t.Run(poor.name, func(t *testing.T) {
			t.Parallel()
			disk := fusekit.Mount(t, poor.opts)
			lock := filepath.Join(disk.Backing, "state", "orchestrator.lock")
			must(t, os.Mkdir(filepath.Dir(lock), 0o755))
			for round := range 8 {
				if round%2 == 1 {
					must(t, os.WriteFile(lock, []byte(expiredLease()), 0o644))
				}
				var contenders []func() answer
				for range 4 {
					contenders = append(contenders, begin(t, disk.Dir, "leasectl", "acquire", "--take-over"))
				}
				var winner string
				for _, wait := range contenders {
					switch a := wait(); a.text("code") {
					case "acquired":
						if winner != "" {
							t.Errorf("round %d has two winners", round)
						}
						winner = a.text("lease.holderId")
					case "held", "changed":
					default:
						t.Errorf("round %d: status %d: %s", round, a.status, a.stdout)
					}
				}
				ask(t, disk.Dir, "leasectl", "release", "--holder", winner).is(0, "released").has("lease.holderId", winner)
				nothingLeft(t, lock)
			}
		})
	}
}

// TestClaimWithoutKernelLockIsUnproven looks at a claim that somebody is inside, on a filesystem that cannot tell. # case B60
func TestClaimWithoutKernelLockIsUnproven(t *testing.T) {
	for _, errno := range []syscall.Errno{0, syscall.ENOLCK, syscall.EOPNOTSUPP, syscall.ENOSYS} {
		t.Run(errno.Error(), func(t *testing.T) {
			t.Parallel()
			pause := newPause(fusekit.Unlink, "orchestrator.lock")
			disk := fusekit.Mount(t, fusekit.Options{Lock: errno, Hook: pause.hook})
			lock := plantFleet(t, disk.Backing, heldLease())
			release := begin(t, disk.Dir, "leasectl", "release", "--holder", plantedHolder)
			pause.wait()

			evidence, err := os.ReadFile(lock + ".mutex")
			must(t, err)
			locks := errno == 0
			if !strings.Contains(string(evidence), fmt.Sprintf(`"kernelLock":%t`, locks)) {
				t.Errorf("evidence: %s", evidence)
			}
			inspected := ask(t, disk.Dir, "leasectl", "claim", "inspect")
			clearing := []string{"leasectl", "claim", "clear", "--token", inspected.text("claim.token")}
			if locks {
				inspected.is(0, "held")
				ask(t, disk.Dir, clearing...).is(1, "held")
			} else {
				inspected.is(0, "unproven").has("claim.verdict", "live")
				ask(t, disk.Dir, clearing...).is(1, "unproven")
			}
			pause.end()
			release().is(0, "released")
			nothingLeft(t, lock)
		})
	}
}

// pause holds one operation up, once.
type pause struct {
	op      fusekit.Op
	name    string
	once    sync.Once
	reached chan struct{}
	over    chan struct{}
}

func newPause(op fusekit.Op, name string) *pause {
	return &pause{op: op, name: name, reached: make(chan struct{}), over: make(chan struct{})}
}

func (p *pause) hook(op fusekit.Op, name string) syscall.Errno {
	if op == p.op && name == p.name {
		p.once.Do(func() {
			close(p.reached)
			<-p.over
		})
	}
	return 0
}

func (p *pause) wait() { <-p.reached }
func (p *pause) end()  { close(p.over) }

// TestSwappedDirectoryRedirectsNothing replaces the state directory while a mutation is inside it. What the mutation still
// has to do it does in the directory that it opened.
func TestSwappedDirectoryRedirectsNothing(t *testing.T) {
	for _, by := range []string{"a directory", "a symlink"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			pause := newPause(fusekit.Fsync, "orchestrator.lock.stage")
			disk := fusekit.Mount(t, fusekit.Options{Hook: pause.hook})
			plantFleet(t, disk.Backing, "")
			acquire := begin(t, disk.Dir, "leasectl", "acquire")
			pause.wait()
			state, moved, victim := filepath.Join(disk.Dir, "state"), filepath.Join(disk.Dir, "moved"), filepath.Join(disk.Dir, "victim")
			must(t, unix.Mkdir(victim, 0o755))
			must(t, unix.Rename(state, moved))
			if by == "a symlink" {
				must(t, unix.Symlink("victim", state))
			} else {
				must(t, unix.Rename(victim, state))
				victim = state
			}
			pause.end()
			acquire().is(0, "acquired")
			ask(t, disk.Dir, "leasectl", "status", "--lock", "moved/orchestrator.lock").is(0, "held")
			if left, err := os.ReadDir(filepath.Join(disk.Backing, filepath.Base(victim))); err != nil || len(left) > 0 {
				t.Errorf("in the other directory there are %v (%v)", left, err)
			}
		})
	}
}

// TestNewFilesHaveTheProtocolsModes looks at a mutation from the side: the claim is nobody else's to write, whatever the
// umask; the rest is as the umask says.
func TestNewFilesHaveTheProtocolsModes(t *testing.T) {
	// Not 000: the server that creates the files for the kernel has a umask as well.
	for umask, mode := range map[string]os.FileMode{"022": 0o644, "027": 0o640, "077": 0o600} {
		t.Run(umask, func(t *testing.T) {
			t.Parallel()
			pause := newPause(fusekit.RenameFlags, "orchestrator.lock")
			disk := fusekit.Mount(t, fusekit.Options{Hook: pause.hook})
			must(t, os.Mkdir(filepath.Join(disk.Backing, "state"), 0o755))
			lock := filepath.Join(disk.Backing, "state", "orchestrator.lock")
			acquire := begin(t, disk.Dir, "sh", "-c", "umask "+umask+"; exec leasectl acquire")
			pause.wait()
			for suffix, want := range map[string]os.FileMode{".mutex": 0o600, ".stage": mode, ".journal": mode} {
				info, err := os.Lstat(lock + suffix)
				must(t, err)
				if info.Mode() != want {
					t.Errorf("%s has mode %v", suffix, info.Mode())
				}
			}
			pause.end()
			acquire().is(0, "acquired")
			info, err := os.Lstat(lock)
			must(t, err)
			if info.Mode() != mode {
				t.Errorf("the lock has mode %v", info.Mode())
			}
		})
	}
}
