package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
	"holdfast/pkg/regfile"
)

// Filesystems without rename-no-replace, and without hard links, are played by a filter on the system calls: it answers
// with the errno that such a filesystem gives. Whichever way is left, Create and Move refuse a name that exists and
// publish one that does not.
func TestPublishingWithoutAllOfTheSystemCalls(t *testing.T) {
	for _, c := range []struct {
		name         string
		rename, link unix.Errno // 0 leaves the call as it is
	}{
		{"everything is supported", 0, 0},
		{"the kernel has no renameat2", unix.ENOSYS, 0},
		{"the filesystem knows no flags", unix.EINVAL, 0},
		{"the operation is not supported", unix.EOPNOTSUPP, 0},
		{"no flags, and links are not permitted", unix.EINVAL, unix.EPERM},
		{"no flags, and links are not supported", unix.EINVAL, unix.EOPNOTSUPP},
		{"no flags, and no link call", unix.ENOSYS, unix.ENOSYS},
		{"no flags, and no more links to one file", unix.EINVAL, unix.EMLINK},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := testkit.Command("fallbacks", t.TempDir(), strconv.Itoa(int(c.rename)), strconv.Itoa(int(c.link)))
			testkit.Play(t, cmd)
		})
	}
	t.Run("another failure is not a lack", func(t *testing.T) {
		for _, errno := range []unix.Errno{unix.EIO, unix.EACCES, unix.EROFS, unix.ENOSPC} {
			cmd := testkit.Command("fallbacks", t.TempDir(), strconv.Itoa(int(errno)), "0", "refused")
			testkit.Play(t, cmd)
		}
	})
}

func withoutSystemCalls(args []string) error {
	dir := args[0]
	rename, _ := strconv.Atoi(args[1])
	link, _ := strconv.Atoi(args[2])
	if err := answer(map[uint32]unix.Errno{unix.SYS_RENAMEAT2: unix.Errno(rename), unix.SYS_LINKAT: unix.Errno(link)}); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "there"), []byte("old"), 0o644); err != nil {
		return err
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "link")); err != nil {
		return err
	}
	d, err := regfile.OpenDir(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if len(args) > 3 {
		return refusesEverything(d, dir, unix.Errno(rename))
	}
	var c testkit.Checks
	before := map[string]string{"there": "old", "link": "-> nowhere"}
	for _, target := range []string{"there", "link"} {
		err := Create(d, "stage", target, []byte("new"), 0o666)
		c.That(errors.Is(err, fs.ErrExist), "create over %s: %v", target, err)
		err = Move(d, "there", "link")
		c.That(errors.Is(err, fs.ErrExist), "move: %v", err)
		err = holds(dir, before)
		c.That(err == nil, "afterwards: %v", err)
	}
	err = Create(d, "stage", "created", []byte("new"), 0o666)
	c.That(err == nil, "create: %v", err)
	err = Move(d, "there", "moved")
	c.That(err == nil, "move: %v", err)
	err = holds(dir, map[string]string{"moved": "old", "link": "-> nowhere", "created": "new"})
	c.That(err == nil, "afterwards: %v", err)
	st, err := d.Lstat("created")
	c.That(err == nil && st.Nlink == 1, "links: %+v", st)
	return c.Err()
}

func refusesEverything(d *regfile.Dir, dir string, errno unix.Errno) error {
	var c testkit.Checks
	err := Create(d, "stage", "created", []byte("new"), 0o666)
	c.That(failed(err, regfile.CodeIO, "publish", errno), "create: %v", err)
	err = Move(d, "there", "moved")
	c.That(failed(err, regfile.CodeIO, "move", errno), "move: %v", err)
	err = holds(dir, map[string]string{"there": "old", "link": "-> nowhere"})
	c.That(err == nil, "afterwards: %v", err)
	return c.Err()
}

// answer makes the system calls of this process fail with the given errnos, for good; 0 leaves a call as it is.
func answer(errnos map[uint32]unix.Errno) error {
	const load, jumpIfEqual, give = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	program := []unix.SockFilter{{Code: load, K: 0}} // the number of the call
	for call, errno := range errnos {
		if errno != 0 {
			program = append(program,
				unix.SockFilter{Code: jumpIfEqual, K: call, Jf: 1},
				unix.SockFilter{Code: give, K: unix.SECCOMP_RET_ERRNO | uint32(errno)})
		}
	}
	program = append(program, unix.SockFilter{Code: give, K: unix.SECCOMP_RET_ALLOW})
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&filter)))
	if errno != 0 {
		return errno
	}
	return nil
}
