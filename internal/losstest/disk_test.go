//go:build linux

package losstest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

// runApart is run in a mount namespace of its own, where the state's directory is a mount that only this run sees: jam makes
// it read-only there, and lift makes it writable again. Other holders see it as it always was.
func (s *scene) runApart(command ...string) (jam, lift func()) {
	s.Helper()
	testkit.NeedRoot(s.T)
	testkit.NeedTool(s.T, "unshare")
	testkit.NeedTool(s.T, "nsenter")
	s.runUnder([]string{"unshare", "-m", "--propagation", "private", "sh", "-c", `mount --bind "$0" "$0" && exec "$@"`, s.dir}, command...)
	remount := func(options string) func() {
		return func() {
			s.Helper()
			cmd := exec.Command("nsenter", "-m", "-t", strconv.Itoa(s.wrapper.Process.Pid), "mount", "-o", "remount,bind,"+options, s.dir)
			if out, err := cmd.CombinedOutput(); err != nil {
				s.Fatalf("%v: %s", err, out)
			}
		}
	}
	return remount("ro"), remount("rw")
}

// TestReadOnlyDirectory (case B31): the renewals fail, the command ignores SIGTERM, somebody waits. The command is over
// when the lease is, and only then the other one gets it.
func TestReadOnlyDirectory(t *testing.T) {
	s := newScene(t)
	jam, _ := s.runApart("stamp", "child", "deaf")
	jam()
	other := s.contend()
	s.lost("renewal-overdue")
	s.says("EROFS")
	other.wins()
	e, told := s.event("renew-failed")
	if !told || e.Code != "io" || !strings.Contains(e.Reason, "EROFS") || e.LeftMs <= 0 || e.LeftMs > usualDuration.Milliseconds()/2 {
		t.Errorf("the event is %+v", e)
	}
	var met []string
	for _, e := range s.eventsIn(s.events) {
		if e.Event == "terminating" || e.Event == "killing" {
			met = append(met, fmt.Sprint(e.Event, e.Processes))
		}
	}
	if got := strings.Join(met, " "); got != "terminating1 terminating1 killing1" {
		t.Errorf("the ending was told as %s", got)
	}
}

// TestReadOnlyForAWhile (case B32): renewals that fail for a while are no reason to end a healthy command.
func TestReadOnlyForAWhile(t *testing.T) {
	s := newScene(t)
	s.duration, s.grace = 6*time.Second, 1500*time.Millisecond
	jam, lift := s.runApart("sh", "-c", `stamp child & sleep 7; kill $!; wait; exit 7`)
	jam()
	s.await("failed renewal", func() bool { _, told := s.event("renew-failed"); return told })
	lift()
	s.unharmed(7)
	if _, told := s.event("renewed"); !told {
		t.Errorf("never renewed: %s", s.read(s.events))
	}
}

// nobody is an ordinary user.
const nobody = 65534

// TestDirectoryOfAnotherUser: an ordinary user's run loses the right to write to the directory.
func TestDirectoryOfAnotherUser(t *testing.T) {
	testkit.NeedRoot(t)
	testkit.NeedTool(t, "setpriv")
	s := newScene(t)
	s.openTo(nobody)
	s.runUnder([]string{"setpriv", "--reuid", fmt.Sprint(nobody), "--regid", fmt.Sprint(nobody), "--clear-groups"}, "stamp", "child", "deaf")
	s.must(os.Chown(s.dir, 0, 0))
	other := s.contend()
	s.lost("renewal-overdue")
	s.says("EACCES")
	other.wins()
}

// openTo lets an ordinary user run the programs and use the scene.
func (s *scene) openTo(id int) {
	s.Helper()
	program, err := exec.LookPath("leasectl")
	s.must(err)
	for _, dir := range []string{program, s.dir, s.evidence} {
		for dir = filepath.Dir(dir); dir != os.TempDir() && dir != "/" && dir != "."; dir = filepath.Dir(dir) {
			s.must(os.Chmod(dir, 0o755))
		}
	}
	s.must(os.Chown(s.dir, id, id))
	s.must(os.Chown(s.evidence, id, id))
}

// TestFullDisk: the filesystem of the state is full, so the new lease cannot be written.
func TestFullDisk(t *testing.T) {
	testkit.NeedRoot(t)
	s := newScene(t)
	mounted := s.dir
	s.seenAs = filepath.Join(mounted, "a.lock")
	s.lock = filepath.Join(s.evidence, "root", mounted, "a.lock")
	s.start([]string{"unshare", "-m", "--propagation", "private", "sh", "-c", `mount -t tmpfs -o size=64k tmpfs "$0" && exec "$@"`, mounted},
		"stamp", "child", "deaf")
	// The mount is seen through the run's own root.
	s.must(os.Symlink(fmt.Sprintf("/proc/%d/root", s.wrapper.Process.Pid), filepath.Join(s.evidence, "root")))
	s.await("the first stamp", func() bool { return len(s.stamps()) > 0 })
	s.sight.acquired()
	before := lookedAt(s.lock)
	s.fill(filepath.Join(s.evidence, "root", mounted, "filler"))
	s.await("loss", func() bool { _, told := s.event("lost"); return told })
	if now := lookedAt(s.lock); now != before {
		t.Errorf("the lease was %s, is %s", before, now)
	}
	for _, name := range []string{".stage", ".mutex"} {
		s.await("end of the last try", func() bool { return lookedAt(s.lock+name) == "nothing" })
	}
	s.lost("renewal-overdue")
	s.says("ENOSPC")
}

// fill writes a file until the filesystem is full.
func (s *scene) fill(path string) {
	s.Helper()
	f, err := os.Create(path)
	s.must(err)
	defer f.Close()
	for chunk := 1 << 12; ; {
		if _, err = f.Write(make([]byte, chunk)); err != nil {
			if chunk == 1 {
				break
			}
			chunk = 1
		}
	}
	if pathErr, ok := err.(*os.PathError); !ok || pathErr.Err != unix.ENOSPC {
		s.Fatal("the disk is not full:", err)
	}
}
