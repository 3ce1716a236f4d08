package regfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

func TestOnlyARegularFileIsOpened(t *testing.T) {
	both(t, func(t *testing.T, noProc bool) {
		dir := t.TempDir()
		d := openDir(t, dir, noProc)
		kinds := entries(t, dir)
		var verify []func()
		for name, kind := range kinds {
			if kind != Directory && kind != Symlink {
				verify = append(verify, neverOpened(t, filepath.Join(dir, name)))
			}
		}
		verify = append(verify, neverOpened(t, filepath.Join(dir, "file"))) // the end of a link
		for name, kind := range kinds {
			for _, access := range []int{unix.O_RDONLY, unix.O_RDWR, unix.O_RDWR | unix.O_APPEND} {
				testkit.Within(t, 10*time.Second, func() {
					_, err := d.Open(name, access)
					refused(t, err, kind, filepath.Join(dir, name))
				})
			}
			_, err := d.Read(name, DefaultLimit)
			refused(t, err, kind, filepath.Join(dir, name))
			_, err = d.ReadOwned(name, DefaultLimit)
			refused(t, err, kind, filepath.Join(dir, name))
		}
		for _, v := range verify {
			v()
		}
		snap, err := d.Read("file", DefaultLimit)
		check(t, err)
		if string(snap.Bytes) != "content" || snap.Stamp.Kind != Regular || snap.Stamp.Size != 7 {
			t.Errorf("%+v", snap)
		}
	})
}

func refused(t *testing.T, err error, kind Kind, path string) {
	t.Helper()
	e := coded(t, err, CodeNotRegular)
	want := fmt.Sprintf("%s is %s, not a regular file, so it was not opened", path, kind.Noun())
	if e.Kind != kind || e.Path != path || e.Error() != want || e.Stamp == nil || e.Stamp.Kind != kind {
		t.Errorf("%+v, want %s", e, want)
	}
}

func TestAbsentIsAbsent(t *testing.T) {
	both(t, func(t *testing.T, noProc bool) {
		d := openDir(t, t.TempDir(), noProc)
		_, err := d.Read("nothing", DefaultLimit)
		e := coded(t, err, CodeAbsent)
		if e.Kind != Absent || !IsAbsent(err) || !errors.Is(err, fs.ErrNotExist) || !strings.HasSuffix(e.Error(), "/nothing does not exist") {
			t.Errorf("%+v: %v", e, e)
		}
		_, err = d.Lstat("nothing")
		coded(t, err, CodeAbsent)
	})
}

func TestANameMayBeTooLongOrTheDirectoryGone(t *testing.T) {
	both(t, func(t *testing.T, noProc bool) {
		dir := filepath.Join(t.TempDir(), "sub")
		check(t, os.Mkdir(dir, 0o755))
		d := openDir(t, dir, noProc)
		_, err := d.Read(strings.Repeat("x", 300), DefaultLimit)
		if e := coded(t, err, CodeIO); !strings.Contains(e.Error(), "ENAMETOOLONG") || e.Kind != Unexaminable {
			t.Errorf("%v", e)
		}
		check(t, os.Remove(dir))
		_, err = d.Read("file", DefaultLimit)
		coded(t, err, CodeAbsent)
	})
}

func TestASwappedDirectoryRedirectsNothing(t *testing.T) {
	both(t, func(t *testing.T, noProc bool) {
		top := t.TempDir()
		first, other := filepath.Join(top, "state"), filepath.Join(top, "aside")
		check(t, os.Mkdir(first, 0o755))
		write(t, filepath.Join(first, "file"), "first")
		d := openDir(t, first, noProc)
		check(t, os.Rename(first, other))
		check(t, os.Mkdir(first, 0o755))
		write(t, filepath.Join(first, "file"), "second")
		write(t, filepath.Join(first, "new"), "second")

		snap, err := d.Read("file", DefaultLimit)
		check(t, err)
		if string(snap.Bytes) != "first" {
			t.Errorf("read %q", snap.Bytes)
		}
		if _, err := d.Lstat("new"); !IsAbsent(err) {
			t.Errorf("the new directory's entry: %v", err)
		}
		names, err := d.Names()
		if err != nil || len(names) != 1 || names[0] != "file" {
			t.Errorf("%q, %v", names, err)
		}
		check(t, d.Sync())
	})
}

func TestNamesAreAllOfThem(t *testing.T) {
	dir := t.TempDir()
	d := openDir(t, dir, false)
	if names, err := d.Names(); err != nil || len(names) != 0 {
		t.Errorf("%q, %v", names, err)
	}
	kinds := entries(t, dir)
	for range 2 { // the second listing begins at the beginning again
		names, err := d.Names()
		check(t, err)
		if len(names) != len(kinds)+1 {
			t.Errorf("%d names, want %d: %q", len(names), len(kinds)+1, names)
		}
		for _, name := range names {
			if kinds[name] == "" && name != "file" {
				t.Errorf("unexpected %q", name)
			}
		}
	}
}

func TestOpenDirTakesDirectoriesOnly(t *testing.T) {
	dir := t.TempDir()
	entries(t, dir)
	write(t, filepath.Join(dir, "directory", "inside"), "x")
	for _, name := range []string{"directory", "link to a directory"} {
		d := openDir(t, filepath.Join(dir, name), false)
		if _, err := d.Lstat("inside"); err != nil {
			t.Error(err)
		}
	}
	for name, want := range map[string]Kind{"file": Regular, "fifo": FIFO, "socket": Socket, "link": Regular, "link to a fifo": FIFO} {
		testkit.Within(t, 10*time.Second, func() {
			_, err := OpenDir(filepath.Join(dir, name))
			if e := coded(t, err, CodeDirectoryInvalid); e.Kind != want || !strings.Contains(e.Error(), want.Noun()+", not a directory") {
				t.Errorf("%s: %v", name, e)
			}
		})
	}
	for name, errno := range map[string]string{"nothing": "ENOENT", "dangling": "", "loop": "", "file/x": "ENOTDIR"} {
		_, err := OpenDir(filepath.Join(dir, name))
		if e := coded(t, err, CodeDirectoryInvalid); !strings.Contains(e.Error(), errno) {
			t.Errorf("%s: %v", name, e)
		}
	}
	_, err := OpenDir(filepath.Join(dir, strings.Repeat("x", 300)))
	coded(t, err, CodeIO)
}

func TestAnOpenFileIsAppendedToAndReadAt(t *testing.T) {
	both(t, func(t *testing.T, noProc bool) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "file"), "0123456789")
		f, err := openDir(t, dir, noProc).Open("file", unix.O_RDWR|unix.O_APPEND)
		check(t, err)
		defer f.Close()
		_, err = unix.Write(f.FD(), []byte("ab"))
		check(t, err)
		buf := make([]byte, 8)
		if n, err := f.ReadAt(buf, 7); n != 5 || err != nil || string(buf[:n]) != "789ab" {
			t.Errorf("%d %q %v", n, buf, err)
		}
		st, err := f.Stat()
		if err != nil || st.Size != 12 || f.Stamp().Size != 10 || !st.SameFile(f.Stamp()) {
			t.Errorf("%+v %+v %v", st, f.Stamp(), err)
		}
	})
}

// A program that is to keep files from a child must not leak them.
func TestDescriptorsAreNotInherited(t *testing.T) {
	both(t, func(t *testing.T, noProc bool) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "file"), "x")
		d := openDir(t, dir, noProc)
		f, err := d.Open("file", 0)
		check(t, err)
		defer f.Close()
		for _, fd := range []int{d.FD(), f.FD()} {
			flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
			if err != nil || flags&unix.FD_CLOEXEC == 0 {
				t.Errorf("descriptor %d: flags %#x, %v", fd, flags, err)
			}
		}
	})
}
