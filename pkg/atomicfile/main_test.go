package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
	"holdfast/pkg/regfile"
)

func TestMain(m *testing.M) {
	testkit.Main(m, map[string]testkit.Part{
		"filesize":  underAFileSizeLimit,
		"full":      onAFullFilesystem,
		"mounts":    onMountPoints,
		"ordinary":  ordinaryUser,
		"fallbacks": withoutSystemCalls,
	})
}

func open(t testing.TB, path string) *regfile.Dir {
	t.Helper()
	d, err := regfile.OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, path, content string) {
	t.Helper()
	check(t, os.WriteFile(path, []byte(content), 0o644))
}

// like is what Replace is told of the file that is there.
func like(t testing.TB, d *regfile.Dir, name string) regfile.Stamp {
	t.Helper()
	st, err := d.Lstat(name)
	check(t, err)
	return st
}

// holds compares a directory with what it should hold: contents by name, "name -> target" for a link.
func holds(dir string, want map[string]string) error {
	listed, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	var names []string
	for _, e := range listed {
		names = append(names, e.Name())
		path := filepath.Join(dir, e.Name())
		content, err := os.ReadFile(path)
		if e.Type()&os.ModeSymlink != 0 {
			var target string
			target, err = os.Readlink(path)
			content = []byte("-> " + target)
		}
		if w, ok := want[e.Name()]; err != nil || !ok || w != string(content) {
			errs = append(errs, fmt.Errorf("%s is %.40q (%v), want %.40q", e.Name(), content, err, w))
		}
	}
	for name := range want {
		if !slices.Contains(names, name) {
			errs = append(errs, fmt.Errorf("%s is missing", name))
		}
	}
	return errors.Join(errs...)
}

func expect(t testing.TB, dir string, want map[string]string) {
	t.Helper()
	if err := holds(dir, want); err != nil {
		t.Error(err)
	}
}

// failed reports whether err is the *regfile.Error of that code for that operation, and carries the errno.
func failed(err error, code, op string, errno unix.Errno) bool {
	var e *regfile.Error
	return errors.As(err, &e) && e.Code == code && e.Op == op && errors.Is(err, errno) &&
		strings.Contains(err.Error(), unix.ErrnoName(errno))
}

// umask sets the process's umask for a test.
func umask(t testing.TB, mask int) {
	old := syscall.Umask(mask)
	t.Cleanup(func() { syscall.Umask(old) })
}
