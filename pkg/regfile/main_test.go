package regfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.Main(m, map[string]testkit.Part{
		"ordinary": ordinaryUser,
		"noproc":   withoutProc,
		"mounts":   onOtherFilesystems,
	})
}

// both runs a test through each of the two ways to open a file: through /proc, and by comparing lstat with fstat.
func both(t *testing.T, f func(t *testing.T, noProc bool)) {
	t.Run("handle", func(t *testing.T) { f(t, false) })
	t.Run("compared", func(t *testing.T) { f(t, true) })
}

func openDir(t testing.TB, path string, noProc bool) *Dir {
	t.Helper()
	d, err := OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	d.noProc = noProc
	return d
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// coded returns the *Error with that code that err must be.
func coded(t testing.TB, err error, code string) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("%v, want %s", err, code)
	}
	return e
}

// entries makes one of everything that a directory can hold and returns the kinds by name.
func entries(t testing.TB, dir string) map[string]Kind {
	t.Helper()
	at := func(name string) string { return filepath.Join(dir, name) }
	write(t, at("file"), "content")
	check(t, os.Mkdir(at("directory"), 0o755))
	check(t, unix.Mkfifo(at("fifo"), 0o644))
	socket(t, at("socket"))
	for name, target := range map[string]string{
		"link": "file", "link to a fifo": "fifo", "link to a directory": "directory", "dangling": "nothing", "loop": "loop",
		"long way": "link", "through a file": "file/x",
	} {
		check(t, os.Symlink(target, at(name)))
	}
	kinds := map[string]Kind{
		"directory": Directory, "fifo": FIFO, "socket": Socket, "link": Symlink, "link to a fifo": Symlink,
		"link to a directory": Symlink, "dangling": Symlink, "loop": Symlink, "long way": Symlink, "through a file": Symlink,
	}
	if os.Geteuid() == 0 {
		// Numbers that no driver serves: an open would fail with another error than the one that is expected.
		check(t, unix.Mknod(at("char-device"), unix.S_IFCHR|0o666, int(unix.Mkdev(240, 77))))
		check(t, unix.Mknod(at("block-device"), unix.S_IFBLK|0o666, int(unix.Mkdev(240, 77))))
		kinds["char-device"], kinds["block-device"] = CharDevice, BlockDevice
	}
	return kinds
}

func socket(t testing.TB, path string) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	check(t, err)
	defer unix.Close(fd)
	check(t, unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
}
