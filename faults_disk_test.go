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

// failing is an operation that a broken disk answers with an errno.
type failing struct {
	verb  string
	lease func() string
	op    fusekit.Op
	name  string
	errno syscall.Errno
	code  string // io unless said otherwise
}

// TestBrokenDiskKeepsOldBytes fails each write, sync and rename of each mutation in turn.
func TestBrokenDiskKeepsOldBytes(t *testing.T) {
	const lock, claim, stage, journal = "orchestrator.lock", "orchestrator.lock.mutex", "orchestrator.lock.stage", "orchestrator.lock.journal"
	for _, f := range []failing{
		{"acquire", none, fusekit.Create, claim, syscall.EIO, "io"},
		{"acquire", none, fusekit.Open, journal, syscall.EIO, "io"},
		{"acquire", none, fusekit.Read, journal, syscall.EIO, "io"},
		{"acquire", none, fusekit.Write, journal, syscall.EIO, "io"},
		{"acquire", none, fusekit.Write, journal, syscall.ENOSPC, "io"},
		{"acquire", none, fusekit.Fsync, journal, syscall.EIO, "io"},
		{"acquire", none, fusekit.Create, stage, syscall.EDQUOT, "io"},
		{"acquire", none, fusekit.Write, stage, syscall.EIO, "io"},
		{"acquire", none, fusekit.Fsync, stage, syscall.EIO, "io"},
		{"acquire", none, fusekit.RenameFlags, lock, syscall.EIO, "io"},
		{"acquire --take-over", expiredLease, fusekit.Write, stage, syscall.ENOSPC, "io"},
		{"acquire --take-over", expiredLease, fusekit.Rename, lock, syscall.EIO, "io"},
		{"renew", heldLease, fusekit.Open, lock, syscall.EIO, "io"},
		{"renew", heldLease, fusekit.Read, lock, syscall.EIO, "io"},
		{"renew", heldLease, fusekit.Create, stage, syscall.ENOSPC, "io"},
		{"renew", heldLease, fusekit.SetAttr, stage, syscall.EIO, "io"},
		{"renew", heldLease, fusekit.Write, stage, syscall.EIO, "io"},
		{"renew", heldLease, fusekit.Fsync, stage, syscall.EIO, "io"},
		{"renew", heldLease, fusekit.Rename, lock, syscall.EROFS, "io"},
		{"renew", heldLease, fusekit.Rename, lock, syscall.EBUSY, "mount-point"},
		{"release", heldLease, fusekit.Unlink, lock, syscall.EIO, "io"},
	} {
		t.Run(fmt.Sprintf("%s, %s %s, %s", f.verb, f.op, strings.TrimPrefix(f.name, lock), unix.ErrnoName(f.errno)), func(t *testing.T) {
			t.Parallel()
			var broken atomic.Bool
			disk := fusekit.Mount(t, fusekit.Options{Hook: func(op fusekit.Op, name string) syscall.Errno {
				if broken.Load() && op == f.op && name == f.name {
					return f.errno
				}
				return 0
			}})
			path := plantFleet(t, disk.Backing, f.lease())
			before, _ := os.ReadFile(path)
			argv := strings.Fields("leasectl " + f.verb)
			done := "acquired"
			if f.verb == "renew" || f.verb == "release" {
				argv = append(argv, "--holder", plantedHolder)
				done = strings.TrimSuffix(f.verb, "e") + "ed"
			}
			broken.Store(true)
			ask(t, disk.Dir, argv...).is(74, f.code).has("errno", unix.ErrnoName(f.errno))
			broken.Store(false)
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Errorf("the lease is now\n%s", after)
			}
			nothingLeft(t, path)
			ask(t, disk.Dir, argv...).is(0, done)
		})
	}
}

// TestLostBytesAreNoticed: a disk that takes the bytes and has not got them afterwards. The lease is not replaced by them.
func TestLostBytesAreNoticed(t *testing.T) {
	var stage atomic.Pointer[string]
	var written atomic.Bool
	disk := fusekit.Mount(t, fusekit.Options{Hook: func(op fusekit.Op, name string) syscall.Errno {
		switch {
		case name != "orchestrator.lock.stage":
		case op == fusekit.Write:
			written.Store(true)
		case op == fusekit.GetAttr && written.Load():
			_ = os.Truncate(*stage.Load(), 10)
		}
		return 0
	}})
	lock := plantFleet(t, disk.Backing, heldLease())
	path := lock + ".stage"
	stage.Store(&path)
	check := untouched(t, disk.Backing)
	ask(t, disk.Dir, "leasectl", "renew", "--holder", plantedHolder).is(74, "io").has("errno", "EIO")
	check("renew")
}

// TestUnreadableIsNeverAbsent: a disk that cannot read a lease is no fleet without one. # case B49
func TestUnreadableIsNeverAbsent(t *testing.T) {
	for _, op := range []fusekit.Op{fusekit.Lookup, fusekit.Open, fusekit.Read} {
		t.Run(string(op), func(t *testing.T) {
			t.Parallel()
			var broken atomic.Bool
			disk := fusekit.Mount(t, fusekit.Options{Hook: func(o fusekit.Op, name string) syscall.Errno {
				if broken.Load() && o == op && name == "orchestrator.lock" {
					return syscall.EIO
				}
				return 0
			}})
			plantFleet(t, disk.Backing, heldLease())
			check := untouched(t, disk.Backing)
			broken.Store(true)
			for _, v := range verbs {
				if v.looks[0] == "lock" {
					ask(t, disk.Dir, append([]string{"leasectl"}, v.argv...)...).is(74, "io").has("errno", "EIO")
					check(v.name)
				}
			}
		})
	}
}

// TestJournalFailureAfterTheFactIsAWarning: the change has happened by then.
func TestJournalFailureAfterTheFactIsAWarning(t *testing.T) {
	for _, v := range []string{"renew", "release"} {
		for _, op := range []fusekit.Op{fusekit.Open, fusekit.Read, fusekit.Write} {
			t.Run(v+" "+string(op), func(t *testing.T) {
				t.Parallel()
				disk := fusekit.Mount(t, fusekit.Options{Hook: func(o fusekit.Op, name string) syscall.Errno {
					if o == op && name == "orchestrator.lock.journal" {
						return syscall.EIO
					}
					return 0
				}})
				lock := plantFleet(t, disk.Backing, heldLease())
				a := ask(t, disk.Dir, "leasectl", v, "--holder", plantedHolder)
				if a.status != 0 || !strings.Contains(a.stderr, "warning: the journal lacks the line of this "+v) ||
					!strings.Contains(a.stderr, "EIO") {
					t.Errorf("status %d: %s%s", a.status, a.stdout, a.stderr)
				}
				nothingLeft(t, lock)
				if got, err := os.ReadFile(lock + ".journal"); err != nil || string(got) != plantedJournal {
					t.Errorf("the journal is now %q (%v)", got, err)
				}
			})
		}
	}
}

// TestSyncOfTheNewJournalsNameIsRequired: an acquire whose number a power cut could take back is none.
func TestSyncOfTheNewJournalsNameIsRequired(t *testing.T) {
	disk := fusekit.Mount(t, fusekit.Options{Hook: func(op fusekit.Op, _ string) syscall.Errno {
		if op == fusekit.FsyncDir {
			return syscall.EIO
		}
		return 0
	}})
	ask(t, disk.Dir, "leasectl", "acquire").is(74, "io").has("errno", "EIO")
	lock := filepath.Join(disk.Backing, "state", "orchestrator.lock")
	if _, err := os.Lstat(lock); err == nil {
		t.Error("the lease was published")
	}
	nothingLeft(t, lock)
}

// TestInterruptedCallsAreRepeated: a filesystem in user space may answer EINTR to anything, as often as it likes.
func TestInterruptedCallsAreRepeated(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	disk := fusekit.Mount(t, fusekit.Options{Hook: func(op fusekit.Op, name string) syscall.Errno {
		mu.Lock()
		defer mu.Unlock()
		key := string(op) + name
		if seen[key]++; seen[key]%3 != 0 && strings.HasPrefix(name, "orchestrator") {
			return syscall.EINTR
		}
		return 0
	}})
	lock := plantFleet(t, disk.Backing, expiredLease())
	holder := ask(t, disk.Dir, "leasectl", "acquire", "--take-over").is(0, "acquired").text("lease.holderId")
	ask(t, disk.Dir, "leasectl", "renew", "--holder", holder).is(0, "renewed")
	ask(t, disk.Dir, "leasectl", "status").is(0, "held")
	ask(t, disk.Dir, "leasectl", "release", "--holder", holder).is(0, "released")
	ask(t, disk.Dir, "leasectl", "acquire").is(0, "acquired")
	ask(t, disk.Dir, "fsdoctor", "classify", "state/orchestrator.lock").is(0, "regular")
	must(t, os.WriteFile(lock, []byte("{"), 0o644))
	ask(t, disk.Dir, "leasectl", "status").is(65, "corrupt").follow(disk.Dir).is(0, "set-aside")
	nothingLeft(t, lock)
	mu.Lock()
	defer mu.Unlock()
	if len(seen) < 20 {
		t.Errorf("only %d operations were interrupted", len(seen))
	}
}
