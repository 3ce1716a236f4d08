package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
	"holdfast/pkg/regfile"
)

// A write that the system cuts short must leave nothing behind. The file-size limit cuts it at an exact byte; it would
// also kill a program that did not ignore SIGXFSZ.
func TestAFileSizeLimitCutsAWriteAndNothingRemains(t *testing.T) {
	dir := t.TempDir()
	prepare(t, dir)
	testkit.Play(t, testkit.Command("filesize", dir))
}

func prepare(t *testing.T, dir string) {
	write(t, filepath.Join(dir, "target"), "old")
	write(t, filepath.Join(dir, "journal"), "first\n")
	write(t, filepath.Join(dir, "new"), "")
}

func underAFileSizeLimit(args []string) error {
	const limit = 10
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		return err
	}
	return withLittleRoom(args[0], unix.EFBIG, limit, []byte("a line that is longer\n"))
}

// withLittleRoom makes every kind of write of content, of which the system takes room bytes at most, and compares what is
// there afterwards with what prepare put there.
func withLittleRoom(dir string, errno unix.Errno, room int, content []byte) error {
	d, err := regfile.OpenDir(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	var c testkit.Checks
	before := map[string]string{"target": "old", "journal": "first\n", "new": ""}
	unchanged := func(what string) {
		err := holds(dir, before)
		c.That(err == nil, "after %s: %v", what, err)
	}
	st, err := d.Lstat("target")
	if err != nil {
		return err
	}
	err = Create(d, "stage", "created", content, 0o666)
	c.That(failed(err, regfile.CodeIO, "write", errno), "create: %v", err)
	unchanged("create")

	err = Replace(d, "stage", "target", content, st)
	c.That(failed(err, regfile.CodeIO, "write", errno), "replace: %v", err)
	unchanged("replace")
	now, err := d.Lstat("target")
	c.That(err == nil && now == st, "the target was touched: %+v, %v", now, err)

	f, err := d.Open("journal", unix.O_RDWR|unix.O_APPEND)
	if err != nil {
		return err
	}
	defer f.Close()
	err = Append(f, content, f.Stamp().Size, true)
	c.That(failed(err, regfile.CodeIO, "write", errno), "append: %v", err)
	unchanged("append")

	fd, err := unix.Open(filepath.Join(dir, "new"), unix.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	c.That(errors.Is(WriteNew(fd, content), errno), "write new")
	unchanged("write new")

	// There is room for this much: a failure above was of the size and not of something else.
	c.That(Replace(d, "stage", "target", content[:room/2], st) == nil, "a small replace failed")
	before["target"] = string(content[:room/2])
	unchanged("a small replace")
	return c.Err()
}

func TestAFullFilesystemCutsAWriteAndNothingRemains(t *testing.T) {
	testkit.NeedRoot(t)
	testkit.Play(t, testkit.Isolated(testkit.Command("full", t.TempDir()), syscall.CLONE_NEWNS))
}

// onAFullFilesystem leaves two pages free: a write of more is cut in its middle.
func onAFullFilesystem(args []string) error {
	dir, page := args[0], os.Getpagesize()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		return err
	}
	for name, content := range map[string]string{"target": "old", "journal": "first\n", "new": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return err
	}
	// The filler is open and has no name, so that the directory holds what it should.
	filler, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		return err
	}
	defer filler.Close()
	if err := os.Remove(filler.Name()); err != nil {
		return err
	}
	if _, err := filler.Write(make([]byte, (int(fs.Bavail)-2)*page)); err != nil {
		return err
	}
	return withLittleRoom(dir, unix.ENOSPC, 2*page, []byte(strings.Repeat("x", 5*page)))
}

func TestMountPointsAreNotReplaced(t *testing.T) {
	testkit.NeedRoot(t)
	testkit.Play(t, testkit.Isolated(testkit.Command("mounts", t.TempDir()), syscall.CLONE_NEWNS))
}

func onMountPoints(args []string) error {
	dir := args[0]
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"target", "plain", "source"} {
		if err := os.WriteFile(at(name), []byte("content of "+name), 0o644); err != nil {
			return err
		}
	}
	if err := unix.Mount(at("source"), at("target"), "", unix.MS_BIND, ""); err != nil {
		return err
	}
	d, err := regfile.OpenDir(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	var c testkit.Checks
	var e *regfile.Error
	err = CheckReplaceable(d, "target")
	c.That(errors.As(err, &e) && e.Code == regfile.CodeMountPoint && e.Path == at("target") &&
		strings.HasSuffix(err.Error(), "is itself a mount point, so it cannot be replaced; mount its directory instead"), "check: %v", err)
	for _, name := range []string{"plain", "source", "nothing"} {
		c.That(CheckReplaceable(d, name) == nil, "check of %s", name)
	}
	st, err := d.Lstat("target")
	if err != nil {
		return err
	}
	err = Replace(d, "stage", "target", []byte("new"), st)
	c.That(errors.As(err, &e) && e.Code == regfile.CodeMountPoint && errors.Is(err, unix.EBUSY), "replace: %v", err)
	err = Remove(d, "target")
	c.That(errors.As(err, &e) && e.Code == regfile.CodeMountPoint && errors.Is(err, unix.EBUSY), "remove: %v", err)
	err = Move(d, "target", "aside")
	c.That(errors.As(err, &e) && e.Code == regfile.CodeMountPoint && errors.Is(err, unix.EBUSY), "move: %v", err)
	err = holds(dir, map[string]string{"target": "content of source", "plain": "content of plain", "source": "content of source"})
	c.That(err == nil, "afterwards: %v", err)
	refusedByAReadOnlyFilesystem(&c, at("target"), dir)
	return c.Err()
}

func refusedByAReadOnlyFilesystem(c *testkit.Checks, mounted, dir string) {
	err := errors.Join(unix.Unmount(mounted, 0), unix.Mount(dir, dir, "", unix.MS_BIND, ""),
		unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	c.That(err == nil, "mount: %v", err)
	d, err := regfile.OpenDir(dir)
	if err != nil {
		c.That(false, "%v", err)
		return
	}
	defer d.Close()
	st, err := d.Lstat("plain")
	c.That(err == nil, "lstat: %v", err)
	err = Replace(d, "stage", "plain", []byte("new"), st)
	c.That(failed(err, regfile.CodeIO, "create", unix.EROFS), "replace: %v", err)
	err = Remove(d, "plain")
	c.That(failed(err, regfile.CodeIO, "remove", unix.EROFS), "remove: %v", err)
	err = Move(d, "plain", "aside")
	c.That(failed(err, regfile.CodeIO, "move", unix.EROFS), "move: %v", err)
}
