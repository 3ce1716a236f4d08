package regfile

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

// Without a usable /proc the way through it gives up, and the other one answers: the same content, the same kinds, and
// never "absent".
func TestWithoutProc(t *testing.T) {
	testkit.NeedRoot(t)
	for _, proc := range []string{"none", "empty", "forged"} {
		t.Run(proc, func(t *testing.T) {
			dir := t.TempDir()
			entries(t, dir)
			testkit.Play(t, testkit.Isolated(testkit.Command("noproc", dir, proc), syscall.CLONE_NEWNS))
		})
	}
}

func withoutProc(args []string) error {
	dir, proc := args[0], args[1]
	if err := replaceProc(proc); err != nil {
		return err
	}
	d, err := OpenDir(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	var c testkit.Checks
	_, err = d.openHandle("file", unix.O_RDONLY|unix.O_NONBLOCK)
	c.That(errors.Is(err, errNoProc), "through /proc: %v", err)
	snap, err := d.Read("file", DefaultLimit)
	c.That(err == nil && string(snap.Bytes) == "content", "read: %v", err)
	for name, kind := range map[string]Kind{"fifo": FIFO, "link": Symlink, "dangling": Symlink, "directory": Directory} {
		_, err = d.Read(name, DefaultLimit)
		var e *Error
		c.That(errors.As(err, &e) && e.Code == CodeNotRegular && e.Kind == kind, "%s: %v", name, err)
	}
	_, err = d.Read("nothing", DefaultLimit)
	c.That(IsAbsent(err), "absent: %v", err)
	return c.Err()
}

// replaceProc puts something else in the place of /proc: nothing at all, an empty directory, or files named like the
// links of our descriptors.
func replaceProc(how string) error {
	if how == "none" {
		return unix.Unmount("/proc", unix.MNT_DETACH)
	}
	if err := unix.Mount("tmpfs", "/proc", "tmpfs", 0, ""); err != nil {
		return err
	}
	if how == "empty" {
		return nil
	}
	if err := os.MkdirAll("/proc/self/fd", 0o755); err != nil {
		return err
	}
	for fd := range 100 {
		path := filepath.Join("/proc/self/fd", strconv.Itoa(fd))
		make := func() error { return os.WriteFile(path, []byte("forged"), 0o644) }
		if fd%2 == 0 {
			make = func() error { return unix.Mkfifo(path, 0o644) }
		}
		if err := make(); err != nil {
			return err
		}
	}
	return nil
}

// TestOtherFilesystems mounts some and asks what they are.
func TestOtherFilesystems(t *testing.T) {
	testkit.NeedRoot(t)
	testkit.Play(t, testkit.Isolated(testkit.Command("mounts", t.TempDir()), syscall.CLONE_NEWNS))
}

func onOtherFilesystems(args []string) error {
	dir := args[0]
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o644); err != nil {
		return err
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return err
	}
	var c testkit.Checks
	d, err := OpenDir(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	c.That(d.IsLocal(), "tmpfs is not local")
	snap, err := d.Read("file", DefaultLimit)
	c.That(err == nil && string(snap.Bytes) == "x", "a read-only filesystem: %v", err)
	_, err = d.Open("file", unix.O_RDWR)
	var e *Error
	c.That(errors.As(err, &e) && e.Code == CodeIO && errors.Is(err, unix.EROFS), "writing to a read-only filesystem: %v", err)

	for _, path := range []string{"/proc", "/sys"} {
		d, err := OpenDir(path)
		if err != nil {
			return err
		}
		c.That(!d.IsLocal(), "%s is local", path) // anything that is not known to be local is taken for shared
		d.Close()
	}
	return c.Err()
}
