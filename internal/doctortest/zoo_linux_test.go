package doctortest

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/testkit"
)

// zoo makes one, and says what is in it.
func zoo(t *testing.T) (dir string, paths []string) {
	t.Helper()
	z, err := testkit.NewZoo(t.TempDir())
	must(t, err)
	t.Cleanup(z.Close)
	must(t, filepath.WalkDir(z.Dir, func(path string, _ fs.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	}))
	return z.Dir, paths
}

// kindOf is the kind that a path has, by the kernel's word.
func kindOf(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Lstat(path)
	must(t, err)
	for bit, kind := range map[fs.FileMode]string{
		fs.ModeDir: "directory", fs.ModeSymlink: "symlink", fs.ModeNamedPipe: "fifo", fs.ModeSocket: "socket", fs.ModeDevice: "char-device",
	} {
		if info.Mode()&bit != 0 {
			return kind
		}
	}
	return "regular"
}

// Each verb ends in time and in little memory, with one right object for each path; nothing in the zoo is changed.
func TestTheZooIsLookedAtWithoutHarm(t *testing.T) {
	t.Parallel()
	dir, paths := zoo(t)
	before := listing(t, dir)
	classify := exec.Command("fsdoctor", "classify", "-0")
	classify.Stdin = strings.NewReader(strings.Join(paths, "\x00"))
	o := measured(t, classify)
	if o.status != 0 || len(o.objects) != len(paths) {
		t.Fatalf("status %d, %d objects of %d paths", o.status, len(o.objects), len(paths))
	}
	for i, x := range o.objects {
		if want := kindOf(t, paths[i]); x.Kind != want || x.Code != want || x.Path != strings.ToValidUTF8(paths[i], "\uFFFD\uFFFD") && strings.ToValidUTF8(paths[i], "") == paths[i] {
			t.Errorf("%q is %s, told as %+v", paths[i], want, x)
		}
	}
	o = measured(t, exec.Command("fsdoctor", "scan", dir))
	fifos := 0
	for _, x := range o.objects {
		if x.Code == "fifo" {
			fifos++
		}
	}
	planted := 0
	for _, path := range paths {
		if kindOf(t, path) == "fifo" {
			planted++
		}
	}
	if o.status != 1 || fifos != planted {
		t.Errorf("status %d, %d pipes of %d", o.status, fifos, planted)
	}
	o = measured(t, exec.Command("fsdoctor", "check", dir))
	if o.status != 1 || o.objects[len(o.objects)-1].Code != "summary" {
		t.Errorf("status %d", o.status)
	}
	// Whatever is no file and lies at a name of a lease or a session is a failure by that name.
	for _, path := range paths {
		name := filepath.Base(path)
		place := filepath.Base(filepath.Dir(path))
		if kind := kindOf(t, path); kind != "regular" && (place == "state" && strings.HasSuffix(name, ".lock") || place == "session" && strings.HasPrefix(name, "entwurf-owner.") && !strings.HasSuffix(name, "-pipe")) &&
			strings.ToValidUTF8(path, "") == path && !o.has("not-regular", path) {
			t.Errorf("nothing is said of %s, a %s", path, kind)
		}
	}
	for kind := range strings.FieldsSeq("fifo socket directory dangling loop zero to-fifo sparse") {
		o := measured(t, exec.Command("fsdoctor", "cat", filepath.Join(dir, kind, "state", "a.lock")))
		if o.status != 65 || len(o.objects) != 0 {
			t.Errorf("cat of %s: status %d: %s", kind, o.status, o.stderr)
		}
	}
	if after := listing(t, dir); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// measured is a run, of the process that looks at files alone, that must take little time and memory.
func measured(t *testing.T, cmd *exec.Cmd) outcome {
	t.Helper()
	cmd.Env = append(os.Environ(), "HOLDFAST_OFFLOADED=0:0,1:0,2:0")
	started := time.Now()
	o := finish(t, cmd)
	if took := time.Since(started); took > 20*time.Second {
		t.Errorf("%v took %s", cmd.Args, took)
	}
	if used := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss; used > 100<<10 {
		t.Errorf("%v needed %d KiB", cmd.Args, used)
	}
	return o
}

func listing(t *testing.T, dir string) string {
	t.Helper()
	text, err := testkit.Listing(dir)
	must(t, err)
	return text
}

// traced are the calls of a run that open, write or change names, one a line, with the descriptors' paths.
func traced(t *testing.T, args ...string) string {
	t.Helper()
	testkit.NeedTool(t, "strace")
	trace := filepath.Join(t.TempDir(), "trace")
	calls := "open,openat,openat2,creat,write,pwrite64,writev,unlink,unlinkat,rename,renameat,renameat2,link,linkat,symlink,symlinkat," +
		"mkdir,mkdirat,mknod,mknodat,rmdir,truncate,ftruncate,chmod,fchmod,fchmodat,chown,fchownat,utimensat,kill,tgkill,ptrace"
	cmd := exec.Command("strace", append([]string{"-ff", "-qq", "-y", "-s", "0", "-o", trace, "-e", "trace=" + calls, "fsdoctor"}, args...)...)
	finish(t, cmd)
	threads, err := filepath.Glob(trace + ".*")
	must(t, err)
	var all []byte
	for _, path := range threads {
		text, err := os.ReadFile(path)
		must(t, err)
		all = append(all, text...)
	}
	return string(all)
}

// The calls that a trace may hold beside opens: writes to pipes and standard output, and the second process being ended.
var (
	opens  = regexp.MustCompile(`\bopen(?:at)?\((?:(?:AT_FDCWD|\d+)<(.*?)>, )?"(?:[^"\\]|\\.)*"\.*, ([A-Z_|]+)[^)]*\)\s+= (-?\d+)(?:<(.*)>)?`)
	writes = regexp.MustCompile(`\b(?:write|writev)\((\d+)<(pipe:|/dev/null|anon_inode:)`)
	inside = regexp.MustCompile(`\b(?:tgkill|kill)\(`)
)

func TestATraceHoldsNothingThatOpensOrChanges(t *testing.T) {
	t.Parallel()
	dir, _ := zoo(t)
	for _, args := range [][]string{
		{"check", dir}, {"scan", dir}, {"classify", filepath.Join(dir, "fifo", "state", "a.lock"), filepath.Join(dir, "zero", "state", "a.lock")},
		{"cat", filepath.Join(dir, "fifo", "state", "a.lock")}, {"cat", filepath.Join(dir, "empty", "state", "a.lock")},
	} {
		opened := 0
		for line := range strings.Lines(traced(t, args...)) {
			switch m := opens.FindStringSubmatch(line); {
			case m != nil:
				opened++
				if why := badOpen(m[2], m[3], m[4]); why != "" {
					t.Errorf("%s: %s: %s", args[0], why, line)
				}
			case strings.HasPrefix(line, "???("): // a thread of the second process was killed before it began a call
			case writes.MatchString(line), inside.MatchString(line), strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- SIG"):
			default:
				t.Errorf("%s: %s", args[0], line)
			}
		}
		if opened < 4 {
			t.Errorf("%s: only %d opens were seen", args[0], opened)
		}
	}
}

// badOpen says what is wrong with an open: that something else than a regular file or a directory was opened, other than as a bare
// handle, or that it was opened for writing. got is what the descriptor led to.
func badOpen(flags, fd, got string) string {
	if fd == "-1" || slices.Contains(strings.Split(flags, "|"), "O_PATH") {
		return ""
	}
	if strings.Contains(flags, "O_WRONLY") || strings.Contains(flags, "O_RDWR") || strings.Contains(flags, "O_CREAT") {
		return "opened for writing"
	}
	if i := strings.LastIndex(got, "<"); i >= 0 { // strace adds what a device is
		return "a device was opened"
	}
	path := strings.ReplaceAll(got, `\n`, "\n")
	if strings.HasPrefix(path, "/proc/") || strings.HasPrefix(path, "/sys/") {
		return ""
	}
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() && !info.IsDir() {
		return "no regular file or directory was opened"
	}
	return ""
}
