package doctortest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit/fusekit"
)

// partly mounts a filesystem that answers everything but what is asked about names that begin with "stuck". It is filled before it
// hangs.
func partly(t *testing.T, fill func(dir string)) *fusekit.FS {
	t.Helper()
	var hangs atomic.Bool
	ended := make(chan struct{})
	fs := fusekit.Mount(t, fusekit.Options{Hook: func(op fusekit.Op, name string) syscall.Errno {
		if hangs.Load() && strings.HasPrefix(name, "stuck") {
			<-ended
			return syscall.EIO
		}
		return 0
	}})
	t.Cleanup(func() { close(ended) })
	fill(fs.Backing)
	hangs.Store(true)
	return fs
}

// plant makes files, pipes where the name says so, and directories where it ends with a slash.
func plant(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		switch {
		case strings.HasSuffix(name, "/"):
			must(t, os.MkdirAll(path, 0o755))
		case strings.Contains(filepath.Base(name), "fifo"):
			must(t, unix.Mkfifo(path, 0o644))
		default:
			must(t, os.WriteFile(path, nil, 0o644))
		}
	}
}

// count counts the objects with a code.
func (o outcome) count(code string) (n int) {
	for _, x := range o.objects {
		if x.Code == code {
			n++
		}
	}
	return n
}

func TestScanGoesOnBehindAFileThatHangs(t *testing.T) {
	t.Parallel()
	fs := partly(t, func(dir string) {
		plant(t, dir, "stuck")
		for i := range 50 {
			plant(t, dir, fmt.Sprintf("fifo%d", i), fmt.Sprintf("sub%d/fifo", i))
		}
	})
	o := doctor(t, "scan", "--probe-timeout", "1s", fs.Dir)
	o2 := doctor(t, "scan", "--only", "fifo", "--probe-timeout", "1s", fs.Dir)
	for _, o := range []outcome{o, o2} {
		if o.status != 1 || o.count("fifo") != 100 || o.count("unreadable") != 0 {
			t.Errorf("it did not go on: %+v", o)
		}
	}
	if !o.has("unresponsive", filepath.Join(fs.Dir, "stuck")) || o.count("unresponsive") != 1 {
		t.Errorf("what hangs is not named: %+v", o)
	}
	if o2.count("unresponsive") != 0 {
		t.Errorf("a pipe is a pipe by the directory's list, and nothing is asked: %+v", o2)
	}
}

// Each thing that hangs takes a thread and the patience: a whole directory of them is given up, and said.
func TestScanGivesUpADirectoryInWhichManyHang(t *testing.T) {
	t.Parallel()
	fs := partly(t, func(dir string) {
		for i := range 40 {
			plant(t, dir, fmt.Sprintf("files/stuck%d", i), fmt.Sprintf("dirs/stuck%d/file", i), fmt.Sprintf("dirs/ok%d/fifo", i))
		}
		plant(t, dir, "good/fifo", "files/fifo")
	})
	o := doctor(t, "scan", "--probe-timeout", "1s", fs.Dir)
	if o.status != 1 || !o.has("fifo", filepath.Join(fs.Dir, "good", "fifo")) {
		t.Errorf("it did not go on: %+v", o)
	}
	files, waited, dirs, said := 0, 0, map[string]bool{}, false
	for _, x := range o.objects {
		if x.Code == "unresponsive" && strings.HasPrefix(x.Path, filepath.Join(fs.Dir, "files")) {
			files++
			said = said || strings.Contains(x.Detail, "the rest of that directory was not looked at")
		}
		if strings.HasPrefix(x.Path, filepath.Join(fs.Dir, "dirs")) {
			dirs[x.Path] = true
			if x.Detail == "its filesystem does not answer" {
				waited++
			}
		}
	}
	if files != 2 || !said {
		t.Errorf("of files that hang: %+v", o)
	}
	if waited < 2 || waited > 3 { // two threads may be at one each, when the second one is counted
		t.Errorf("%d directories were waited for: %+v", waited, o)
	}
	// Nothing is passed over in silence.
	for i := range 40 {
		if !dirs[filepath.Join(fs.Dir, "dirs", fmt.Sprintf("stuck%d", i))] {
			t.Errorf("dirs/stuck%d is not named", i)
		}
		ok := filepath.Join(fs.Dir, "dirs", fmt.Sprintf("ok%d", i))
		if !dirs[ok] && !dirs[filepath.Join(ok, "fifo")] {
			t.Errorf("dirs/ok%d is neither looked at nor named", i)
		}
	}
}

// A link into a filesystem that hangs hides nothing that is beside it.
func TestScanGoesOnBehindALinkIntoAFilesystemThatHangs(t *testing.T) {
	t.Parallel()
	fs := partly(t, func(dir string) { plant(t, dir, "stuck/file") })
	tree := t.TempDir()
	for i := range 10 {
		plant(t, tree, fmt.Sprintf("a%d/fifo", i), fmt.Sprintf("z%d/fifo", i), fmt.Sprintf("fifo%d", i))
	}
	must(t, os.Symlink(filepath.Join(fs.Dir, "stuck", "file"), filepath.Join(tree, "link")))
	o := doctor(t, "scan", "--probe-timeout", "1s", tree)
	if o.status != 1 || o.count("fifo") != 30 || !o.has("unresponsive", filepath.Join(tree, "link")) || o.count("unresponsive") != 1 {
		t.Errorf("%+v", o)
	}
}

// The same of a check, for which a file's content is asked as well.
func TestCheckGoesOnBehindAFileThatHangs(t *testing.T) {
	t.Parallel()
	fs := partly(t, func(dir string) {
		plant(t, dir, "stuck.lock/", "a/fifo.lock", "a/fifo.lock.mutex", "state/stuck.lock", "z/fifo.lock", "z/fifo.lock.mutex")
	})
	o := doctor(t, "check", "--probe-timeout", "1s", fs.Dir)
	for _, dir := range []string{"a", "z"} {
		if !o.has("not-regular", filepath.Join(fs.Dir, dir, "fifo.lock")) {
			t.Errorf("it did not go on to %s: %+v", dir, o)
		}
	}
	if o.status != 1 || !o.has("unresponsive", filepath.Join(fs.Dir, "state")) && !o.has("unresponsive", filepath.Join(fs.Dir, "state", "stuck.lock")) {
		t.Errorf("what hangs is not named: %+v", o)
	}
}
