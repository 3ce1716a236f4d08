//go:build linux

package holdfast_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

// page is what a file takes at least on a tmpfs.
const page = 4096

// onTmpfs is a session on a small filesystem in memory, which only this test and what it starts can see.
func onTmpfs(t *testing.T) *crashSession {
	t.Helper()
	testkit.NeedRoot(t)
	runtime.LockOSThread() // and never unlocked: the thread ends with the test, and its namespace with it
	testkit.Need(t, unix.Unshare(unix.CLONE_FS|unix.CLONE_NEWNS) == nil, "mount namespaces")
	must(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	s := newCrashSession(t)
	must(t, unix.Mount("tmpfs", s.root, "tmpfs", 0, "size=256k"))
	t.Cleanup(func() { _ = unix.Unmount(s.root, unix.MNT_DETACH) })
	for _, dir := range []string{s.dir, filepath.Dir(s.ticket), s.meta()} {
		must(t, os.Mkdir(dir, 0o755))
	}
	return s
}

// fill leaves so many pages of the filesystem free.
func (s *crashSession) fill(t *testing.T, free int) {
	t.Helper()
	f, err := os.Create(filepath.Join(s.root, "filler"))
	must(t, err)
	defer f.Close()
	size := int64(0)
	for ; err == nil; size += page {
		_, err = f.Write(make([]byte, page))
	}
	must(t, f.Truncate(size-page*int64(1+free)))
}

// firstEnrollment is an enrolment without an earlier one.
var firstEnrollment = gardenVerb{"enroll first", gardenVerbs[0].args, "enrolled"}

// TestGardenOnAFullDisk gives each verb more and more space, until it succeeds: till then it is refused with the errno, claim,
// ticket, record and location are as they were, and nothing is left behind.
func TestGardenOnAFullDisk(t *testing.T) {
	for _, v := range append(gardenVerbs, firstEnrollment) {
		t.Run(v.name, func(t *testing.T) {
			s := onTmpfs(t)
			args := v.args(t, s)
			if v.name != firstEnrollment.name {
				s.plantGarden(t, s.dead())
			}
			for _, dir := range []string{"meta-sessions", "meta-receivers", "meta-record-arm-locks"} {
				must(t, os.MkdirAll(filepath.Join(s.meta(), dir), 0o755))
			}
			refused := 0
			for free := 0; ; free++ {
				s.fill(t, free)
				check := untouched(t, s.root)
				a := ask(t, s.root, append([]string{"fencectl"}, args...)...)
				if a.status == 0 {
					a.is(0, v.done)
					break
				}
				a.is(74, "io").has("errno", "ENOSPC")
				check(fmt.Sprintf("%s with %d free pages", v.name, free))
				if refused++; refused > 16 {
					t.Fatal("there is never enough")
				}
			}
			if refused == 0 {
				t.Error("the disk was not full")
			}
		})
	}
}

// TestGardenOnAReadOnlyDisk: every verb is refused with the errno and nothing is changed, whether or not there is a directory for
// the record-arm lock.
func TestGardenOnAReadOnlyDisk(t *testing.T) {
	for _, v := range append(gardenVerbs, firstEnrollment) {
		for _, armed := range []bool{false, true} {
			t.Run(strings.Join([]string{v.name, fmt.Sprint(armed)}, " "), func(t *testing.T) {
				s := onTmpfs(t)
				args := v.args(t, s)
				s.plantGarden(t, s.dead())
				if armed {
					must(t, os.Mkdir(filepath.Join(s.meta(), "meta-record-arm-locks"), 0o755))
				}
				check := untouched(t, s.root)
				must(t, unix.Mount("", s.root, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
				ask(t, s.root, append([]string{"fencectl"}, args...)...).is(74, "io").has("errno", "EROFS")
				check(v.name)
			})
		}
	}
}
