package doctortest

import (
	"fmt"
	"os"
	"os/exec"
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
		if x.Code == "unresponsive" && strings.HasPrefix(x.Path, filepath.Join(fs.Dir, "files", "stuck")) {
			files++
		}
		said = said || x.Code == "unresponsive" && x.Path == filepath.Join(fs.Dir, "files") && strings.Contains(x.Detail, "the rest of it was not looked at")
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

// Links into a filesystem that hangs hide nothing that is beside them, and are not waited for one by one.
func TestScanGoesOnBehindLinksIntoAFilesystemThatHangs(t *testing.T) {
	t.Parallel()
	fs := partly(t, func(dir string) { plant(t, dir, "stuck/file") })
	tree := t.TempDir()
	for i := range 10 {
		plant(t, tree, fmt.Sprintf("a%d/fifo", i), fmt.Sprintf("z%d/fifo", i), fmt.Sprintf("fifo%d", i))
		must(t, os.Symlink(filepath.Join(fs.Dir, "stuck", "file"), filepath.Join(tree, fmt.Sprintf("same%d", i))))
		must(t, os.Symlink(filepath.Join(fs.Dir, fmt.Sprintf("stuck%d", i), "file"), filepath.Join(tree, fmt.Sprintf("other%d", i))))
		must(t, os.Symlink(filepath.Join(fs.Dir, fmt.Sprintf("dir%d", i), "stuck"), filepath.Join(tree, fmt.Sprintf("apart%d", i))))
		plant(t, fs.Backing, fmt.Sprintf("dir%d/", i))
	}
	o := doctor(t, "scan", "--probe-timeout", "1s", tree)
	if o.status != 1 || o.count("fifo") != 30 || o.count("unresponsive") != 30 {
		t.Errorf("%+v", o)
	}
	waited := 0
	for _, x := range o.objects {
		if x.Detail == "where it leads does not answer" {
			waited++
		}
	}
	if waited > 10 { // eight of a filesystem, and two threads
		t.Errorf("it waited %d times: %+v", waited, o)
	}
}

// A link whose text goes through a filesystem that hangs and back up, or to another link, does not make what it leads to hopeless.
func TestScanBlamesNobodyForALinkThatGoesBackUp(t *testing.T) {
	t.Parallel()
	fs := partly(t, func(dir string) { plant(t, dir, "stuck/file") })
	tree := t.TempDir()
	plant(t, tree, "links/")
	for i := range 10 {
		plant(t, tree, fmt.Sprintf("dir%d/fifo", i))
	}
	for i := range 4 {
		links := filepath.Join(tree, "links")
		must(t, os.Symlink(fmt.Sprintf("%s/stuck/../../%s/dir%d", fs.Dir, filepath.Base(tree), i), filepath.Join(links, fmt.Sprintf("up%d", i))))
		must(t, os.Symlink(filepath.Join(fs.Dir, "stuck", "file"), filepath.Join(tree, fmt.Sprintf("direct%d", i))))
		must(t, os.Symlink(fmt.Sprintf("../direct%d", i), filepath.Join(links, fmt.Sprintf("chained%d", i))))
		must(t, os.Symlink(fmt.Sprintf("../dir%d/fifo", i), filepath.Join(links, fmt.Sprintf("good%d", i))))
	}
	o := doctor(t, "scan", "--probe-timeout", "1s", tree)
	if o.status != 1 || o.count("fifo") != 10 || o.count("unresponsive") != 12 {
		t.Errorf("%d pipes, %d unresponsive: %+v", o.count("fifo"), o.count("unresponsive"), o)
	}
	// The same of classify.
	cmd := exec.Command("fsdoctor", "classify", "--probe-timeout", "1s")
	names, err := filepath.Glob(tree + "/links/*")
	must(t, err)
	cmd.Stdin = strings.NewReader(strings.Join(append(names, filepath.Join(tree, "dir0", "fifo")), "\n"))
	o = finish(t, cmd)
	if o.count("unresponsive") != 8 || o.count("symlink") != 4 || o.count("fifo") != 1 {
		t.Errorf("%+v", o)
	}
}

// A check looks at a place once more without the file that hangs, and every other place.
func TestCheckGoesOnBehindAFileThatHangs(t *testing.T) {
	t.Parallel()
	fs := partly(t, func(dir string) {
		plant(t, dir, "a/fifo.lock", "a/fifo.lock.mutex", "state/stuck.lock", "state/a-fifo.lock", "state/z-fifo.lock", "z/fifo.lock", "z/fifo.lock.mutex")
	})
	o := doctor(t, "check", "--probe-timeout", "1s", fs.Dir)
	for _, name := range []string{"a/fifo.lock", "state/a-fifo.lock", "state/z-fifo.lock", "z/fifo.lock"} {
		for _, check := range []string{"entry-types", "lease"} {
			if !o.said(check, filepath.Join(fs.Dir, name), "fail") {
				t.Errorf("%s did not go on to %s: %+v", check, name, o)
			}
		}
	}
	stuck := filepath.Join(fs.Dir, "state", "stuck.lock")
	for _, check := range []string{"entry-types", "lease", "permissions", "clock"} {
		if !o.said(check, stuck, "fail") {
			t.Errorf("%s does not say that %s hangs: %+v", check, stuck, o)
		}
	}
	for _, x := range o.objects {
		if x.Code == "unresponsive" && !strings.HasPrefix(x.Remedy, "none is safe: its server has to answer again") {
			t.Errorf("the remedy of %+v", x)
		}
	}
	if n := o.waits(); o.status != 1 || n != 1 {
		t.Errorf("it waited %d times: %+v", n, o)
	}
}

// said reports whether a check has said that of a path once.
func (o outcome) said(check, path, status string) bool {
	n := 0
	for _, x := range o.objects {
		if x.Check == check && x.Path == path && x.Status == status {
			n++
		}
	}
	return n == 1
}

// Where many places hang, the directory that they are in is given up, and each check says so of each.
func TestCheckGivesUpADirectoryInWhichManyHang(t *testing.T) {
	t.Parallel()
	fs := partly(t, func(dir string) {
		for i := range 40 {
			plant(t, dir, fmt.Sprintf("sessions/s%d/stuck-owner.tx", i), fmt.Sprintf("sessions/stuck%d/x", i))
		}
		plant(t, dir, "good/state/fifo.lock")
	})
	o := doctor(t, "check", "--probe-timeout", "1s", fs.Dir)
	if !o.has("not-regular", filepath.Join(fs.Dir, "good", "state", "fifo.lock")) {
		t.Errorf("it did not go on: %+v", o)
	}
	for i := range 40 {
		if path := filepath.Join(fs.Dir, "sessions", fmt.Sprintf("stuck%d", i)); !o.has("unresponsive", path) {
			t.Errorf("%s is not named: %+v", path, o)
		}
	}
	if n := o.waits(); n != 2 {
		t.Errorf("it waited %d times: %+v", n, o)
	}
}

// waits counts what was waited for in vain.
func (o outcome) waits() (n int) {
	for _, x := range o.objects {
		if x.Detail == "its filesystem does not answer" || x.Reason == "its filesystem does not answer" {
			n++
		}
	}
	return n
}

func TestClassifyWaitsForFewOfManyThatHang(t *testing.T) {
	t.Parallel()
	fs := partly(t, func(dir string) { plant(t, dir, "fifo", "stuck/", "good/fifo") })
	var paths []string
	for i := range 1000 {
		paths = append(paths, filepath.Join(fs.Dir, "stuck", fmt.Sprint(i)))
	}
	paths = append(paths, filepath.Join(fs.Dir, "fifo"), filepath.Join(fs.Dir, "good", "fifo"))
	cmd := exec.Command("fsdoctor", "classify", "--probe-timeout", "1s")
	cmd.Stdin = strings.NewReader(strings.Join(paths, "\n"))
	o := finish(t, cmd)
	if len(o.objects) != 1002 || o.count("unresponsive") != 1000 || o.waits() != 2 || o.count("fifo") != 2 {
		t.Errorf("%d objects, %d unresponsive, %d waits, %d fifos", len(o.objects), o.count("unresponsive"), o.waits(), o.count("fifo"))
	}
	// A link there is a link all the same, and the file beside it is looked at.
	tree := t.TempDir()
	for i := range 20 {
		must(t, os.Symlink(paths[i], filepath.Join(tree, fmt.Sprint(i))))
	}
	plant(t, tree, "fifo")
	names, err := filepath.Glob(tree + "/*")
	must(t, err)
	cmd = exec.Command("fsdoctor", "classify", "--probe-timeout", "1s")
	cmd.Stdin = strings.NewReader(strings.Join(names, "\n"))
	o = finish(t, cmd)
	if len(o.objects) != 21 || o.count("fifo") != 1 || o.count("unresponsive") != 20 {
		t.Errorf("%+v", o)
	}
	waited := 0
	for _, x := range o.objects[:20] {
		if x.Kind != "symlink" || x.Path == "" {
			t.Errorf("%+v", x)
		}
		asked := strings.HasPrefix(x.Reason, "where it leads does not answer")
		if waited = waited + map[bool]int{true: 1}[asked]; !asked && !strings.HasPrefix(x.Reason, "where it leads was not looked at") {
			t.Errorf("%+v", x)
		}
	}
	if waited != 8 {
		t.Errorf("%d links were waited for", waited)
	}
	// What is named on the command line is looked at whatever lies beside it.
	o = doctor(t, "classify", "--probe-timeout", "1s", paths[0], paths[1], paths[2], filepath.Join(fs.Dir, "fifo"))
	if o.waits() != 3 || o.count("fifo") != 1 {
		t.Errorf("%+v", o)
	}
}
