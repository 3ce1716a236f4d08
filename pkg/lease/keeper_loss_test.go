package lease

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
	"holdfast/pkg/regfile"
)

// sabotage is something that happens to a lease file, and the cause of the loss it must be.
type sabotage struct {
	name  string
	do    func(k *kept)
	cause string
	says  string // in the loss's text
}

var sabotages = []sabotage{
	{"another holder", func(k *kept) { k.edit(func(l *Lease) { l.HolderID = "another" }) }, CodeNotHolder, "another"},
	{"gone", func(k *kept) { k.must(os.Remove(k.path)) }, CodeAbsent, "does not exist"},
	{"moved away", func(k *kept) { k.must(os.Rename(k.path, k.path+".away")) }, CodeAbsent, "does not exist"},
	{"the directory is gone", func(k *kept) { k.must(os.RemoveAll(filepath.Dir(k.path))) }, CodeAbsent, "does not exist"},
	{"the directory is moved away", func(k *kept) { k.moveAway() }, CodeDirectoryMoved, "does not lead"},
	{"the directory is another", func(k *kept) { k.moveAway(); k.must(os.Mkdir(k.state(), 0o755)) }, CodeDirectoryMoved, "does not lead"},
	{"the directory is a link to another", func(k *kept) {
		k.moveAway()
		k.must(os.Symlink(os.TempDir(), k.state()))
	}, CodeDirectoryMoved, "does not lead"},
	{"the directory's path leads nowhere", func(k *kept) {
		k.moveAway()
		k.must(os.WriteFile(k.state(), nil, 0o644))
	}, CodeDirectoryMoved, "does not lead"},
	{"expired, by an edit", func(k *kept) { k.edit(func(l *Lease) { l.ExpiresAt = k.Now() }) }, CodeExpired, "expired"},
	{"empty", func(k *kept) { k.put(nil) }, CodeCorrupt, ""},
	{"cut", func(k *kept) { k.must(os.Truncate(k.path, 40)) }, CodeCorrupt, ""},
	{"NUL bytes", func(k *kept) { k.put(make([]byte, 300)) }, CodeCorrupt, ""},
	{"something after it", func(k *kept) { k.put(append(k.file().Encode(), "{}"...)) }, CodeCorrupt, ""},
	{"no expiry", func(k *kept) {
		k.put(bytes.Replace(k.file().Encode(), []byte("expiresAt"), []byte("expiredAt"), 1))
	}, CodeCorrupt, "expiresAt"},
	{"a named pipe", becomes(func(path string) error { return unix.Mkfifo(path, 0o644) }), regfile.CodeNotRegular, "named pipe"},
	{"a directory", becomes(func(path string) error { return os.Mkdir(path, 0o755) }), regfile.CodeNotRegular, "directory"},
	{"a link to a good lease", func(k *kept) {
		k.must(os.Rename(k.path, k.path+".away"))
		k.must(os.Symlink(k.path+".away", k.path))
	}, regfile.CodeNotRegular, "link"},
	{"a link to nothing", becomes(func(path string) error { return os.Symlink("nowhere", path) }), regfile.CodeNotRegular, "link"},
	{"too large", func(k *kept) { k.must(os.Truncate(k.path, regfile.DefaultLimit+1)) }, regfile.CodeTooLarge, ""},
}

// state is the lease's directory.
func (k *kept) state() string { return filepath.Dir(k.path) }

// moveAway renames the directory; the lease in it stays as it is.
func (k *kept) moveAway() {
	k.Helper()
	away := k.state() + ".away"
	k.must(os.Rename(k.state(), away))
	k.Cleanup(func() { os.RemoveAll(away) })
}

// A directory that is moved and reached by its old path all the same, through a link, has not moved for anybody.
func TestDirectoryThatIsStillFoundIsNoLoss(t *testing.T) {
	keeping(t, DefaultDuration, 10*time.Second, func(k *kept) {
		k.moveAway()
		k.must(os.Symlink(k.state()+".away", k.state()))
		k.until(10 * time.Minute)
		k.notLost()
		if len(k.named("renewed")) == 0 {
			t.Error("the lease was not renewed meanwhile")
		}
	})
}

func becomes(make func(path string) error) func(k *kept) {
	return func(k *kept) {
		k.must(os.Remove(k.path))
		k.must(make(k.path))
	}
}

// Each of them is noticed within a tick, reported once, and what is there stays as it is: a lock that has vanished is never
// made again, and nothing that took its place is touched.
func TestEachLossIsNoticedWithinATick(t *testing.T) {
	for _, s := range sabotages {
		t.Run(s.name, func(t *testing.T) {
			keeping(t, DefaultDuration, 10*time.Second, func(k *kept) {
				k.until(700 * time.Millisecond)
				s.do(k)
				left := listed(t, k.path)
				if at := k.lostBy(2*time.Second, s.cause); at > 1700*time.Millisecond {
					t.Errorf("noticed %s after", at-700*time.Millisecond)
				}
				k.onlyLoss()
				if now := listed(t, k.path); now != left {
					t.Errorf("there was\n%s\nnow there is\n%s", left, now)
				}
			})
		})
	}
}

func TestLossSaysWhatWasFound(t *testing.T) {
	for _, s := range sabotages {
		t.Run(s.name, func(t *testing.T) {
			keeping(t, DefaultDuration, 10*time.Second, func(k *kept) {
				s.do(k)
				k.keeper.Check() // and does not wait for a tick
				loss := k.lostYet()
				if loss == nil || loss.Cause != s.cause || loss.ErrorCode() != s.cause {
					t.Fatalf("the loss is %+v, want %s", loss, s.cause)
				}
				if text := loss.Error(); !strings.Contains(text, s.says) {
					t.Errorf("%q does not say %q", text, s.says)
				}
			})
		})
	}
}

// In a sticky directory that everybody can write to, a lease file of somebody else is nobody's lease.
func TestForeignLeaseIsALoss(t *testing.T) {
	testkit.NeedRoot(t)
	share := func(k *kept) { k.must(os.Chmod(filepath.Dir(k.path), os.ModeSticky|0o777)) }
	keepingAfter(t, share, DefaultDuration, 10*time.Second, func(k *kept) {
		k.until(5 * time.Second)
		k.notLost()
		k.must(os.Chown(k.path, 65534, 65534))
		k.lostBy(7*time.Second, regfile.CodeForeignOwner)
		k.onlyLoss()
	})
}

// The same while a renewal is under way. A lock that has vanished is not made again by the renewal that had seen it. (What
// is edited between its last look and its publication is replaced: edits by other means are outside the protocol.)
func TestLossInTheMidstOfARenewal(t *testing.T) {
	for _, s := range sabotages {
		for _, step := range []string{"observed", "claimed", "applied", "confirmed"} {
			t.Run(s.name+"/"+step, func(t *testing.T) {
				keeping(t, 60*time.Second, 10*time.Second, func(k *kept) {
					left := ""
					k.meanwhile(step, func() {
						s.do(k)
						left = listed(t, k.path)
					})
					k.lostBy(32*time.Second, s.cause)
					k.onlyLoss()
					if now := listed(t, k.path); now != left {
						t.Errorf("there was\n%s\nnow there is\n%s", left, now)
					}
				})
			})
		}
	}
}

// listed is what is at a path, without times.
func listed(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return "nothing"
	}
	if err != nil {
		t.Fatal(err)
	}
	what := info.Mode().String()
	if info.Mode().IsRegular() {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		what += "\n" + string(b)
	}
	return what
}

// A renewal that loses against another one of the same holder (its child runs 'leasectl renew') observes and decides again.
func TestLostComparisonIsNoLoss(t *testing.T) {
	keeping(t, 60*time.Second, 10*time.Second, func(k *kept) {
		other, err := Open(k.path, Options{Now: k.Now, Boottime: k.Boottime})
		k.must(err)
		defer other.Close()
		k.meanwhile("observed", func() {
			_, err := other.Renew(context.Background(), k.keeper.Lease().HolderID, 0)
			k.must(err)
		})
		k.until(40 * time.Second)
		k.notLost()
		failed, renewed := k.named("renew-failed"), k.named("renewed")
		if len(failed) != 1 || codeIn(failed[0].Err) != CodeChanged || len(renewed) != 1 {
			t.Fatalf("failed: %+v, renewed: %+v", failed, renewed)
		}
		if renewed[0].at-failed[0].at > 2*time.Second {
			t.Errorf("renewed %s after the comparison was lost", renewed[0].at-failed[0].at)
		}
		synctest.Wait()
		k.until(5 * time.Minute)
		k.notLost()
	})
}
