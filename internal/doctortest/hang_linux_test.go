package doctortest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit/hangfs"
	"holdfast/internal/testkit/pty"
)

// hanging is a tree with a filesystem in it that does not answer, and something to find behind that.
type hanging struct {
	tree   string
	hung   string // where it is mounted
	file   string // one of its files
	behind string // a named pipe behind it
	state  string // a state directory behind it, with a pipe for a lease
}

// hang makes one. Where the server of the inner filesystem has taken the request, what waits for it cannot even be killed.
func hang(t *testing.T, killable bool) hanging {
	t.Helper()
	backing := t.TempDir()
	must(t, os.WriteFile(filepath.Join(backing, "file"), []byte("hello\n"), 0o644))
	disk := hangfs.Mount(t, backing)
	seen := disk
	if !killable {
		seen = disk.Over()
	}
	after := t.TempDir()
	h := hanging{
		tree: filepath.Dir(after), hung: seen.Dir, file: filepath.Join(seen.Dir, "file"),
		behind: filepath.Join(after, "fifo"), state: filepath.Join(after, "state"),
	}
	must(t, unix.Mkfifo(h.behind, 0o644))
	must(t, os.Mkdir(h.state, 0o755))
	must(t, unix.Mkfifo(filepath.Join(h.state, "x.lock"), 0o644))
	disk.Hang()
	return h
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// killables runs a test with a filesystem that lets go of what is killed, and with one that does not.
func killables(t *testing.T, test func(*testing.T, hanging)) {
	t.Run("killable", func(t *testing.T) { t.Parallel(); test(t, hang(t, true)) })
	t.Run("not killable", func(t *testing.T) { t.Parallel(); test(t, hang(t, false)) })
}

func (h hanging) unresponsive(t *testing.T, o outcome, path string) {
	t.Helper()
	if !o.has("unresponsive", path) {
		t.Errorf("%s was not called unresponsive: %+v", path, o)
	}
}

func TestScanGoesOnBehindAFilesystemThatHangs(t *testing.T) {
	t.Parallel()
	killables(t, func(t *testing.T, h hanging) {
		o := doctor(t, "scan", "--probe-timeout", "1s", h.tree)
		h.unresponsive(t, o, h.hung)
		if o.status != 1 || !o.has("fifo", h.behind) || o.objects[len(o.objects)-1].Code != "summary" {
			t.Errorf("it did not go on: %+v", o)
		}
		// A root that hangs is named, and the next root is scanned.
		o = doctor(t, "scan", "--probe-timeout", "1s", h.hung, filepath.Dir(h.behind))
		h.unresponsive(t, o, h.hung)
		if o.status != 1 || !o.has("fifo", h.behind) {
			t.Errorf("it did not go on: %+v", o)
		}
	})
}

func TestCheckGoesOnBehindAFilesystemThatHangs(t *testing.T) {
	t.Parallel()
	killables(t, func(t *testing.T, h hanging) {
		for _, roots := range [][]string{{h.tree}, {h.hung, h.state}} {
			o := doctor(t, append([]string{"check", "--probe-timeout", "1s"}, roots...)...)
			h.unresponsive(t, o, h.hung)
			if o.status != 1 || !o.has("not-regular", filepath.Join(h.state, "x.lock")) || o.objects[len(o.objects)-1].Code != "summary" {
				t.Errorf("it did not go on: %+v", o)
			}
		}
	})
}

func TestClassifyGoesOnBehindAFilesystemThatHangs(t *testing.T) {
	t.Parallel()
	killables(t, func(t *testing.T, h hanging) {
		o := doctor(t, "classify", "--probe-timeout", "1s", h.state, h.file, h.behind)
		if o.status != 0 || len(o.objects) != 3 || !o.has("directory", h.state) || !o.has("fifo", h.behind) {
			t.Errorf("not every path has its object: %+v", o)
		}
		h.unresponsive(t, o, h.file)
		if o.objects[1].Kind != "unexaminable" || o.objects[1].Reason == "" {
			t.Errorf("%+v", o.objects[1])
		}
		// The same from a pipe.
		cmd := exec.Command("fsdoctor", "classify", "-0", "--probe-timeout", "1s")
		cmd.Stdin = strings.NewReader(h.file + "\x00" + h.behind)
		o = finish(t, cmd)
		h.unresponsive(t, o, h.file)
		if o.status != 0 || !o.has("fifo", h.behind) {
			t.Errorf("it did not go on: %+v", o)
		}
	})
}

func TestCatOfAFileThatHangsIsRefused(t *testing.T) {
	t.Parallel()
	killables(t, func(t *testing.T, h hanging) {
		o := doctor(t, "cat", "--probe-timeout", "1s", h.file)
		if o.status != 1 || len(o.objects) != 0 || !strings.Contains(o.stderr, `"code":"unresponsive"`) || !strings.Contains(o.stderr, `"path":"`+h.file+`"`) {
			t.Errorf("%+v", o)
		}
	})
}

// On a terminal the same, in words: nothing of the second process holds the terminal.
func TestATerminalIsGivenBackWhileAFilesystemHangs(t *testing.T) {
	t.Parallel()
	killables(t, func(t *testing.T, h hanging) {
		for _, verb := range []string{"scan", "check"} {
			p := pty.Start(t, exec.Command("fsdoctor", verb, "--probe-timeout", "1s", h.tree), 24, 200)
			if status := p.Wait(); status != 1 {
				t.Errorf("%s: status %d: %s", verb, status, p.All())
			}
			p.Drain()
			if all := p.All(); !strings.Contains(all, "its filesystem does not answer") || !strings.Contains(all, "named pipe") || strings.Contains(all, "{") {
				t.Errorf("%s: %s", verb, all)
			}
			// The line that tells the progress goes before the next one is printed.
			if all := p.All(); strings.Contains(all, "directoriesunresponsive") || !strings.HasSuffix(strings.TrimSpace(all), lastOf(verb)) {
				t.Errorf("%s: %q", verb, all)
			}
		}
	})
}

// lastOf is how the last line of a verb ends.
func lastOf(verb string) string {
	if verb == "scan" {
		return "unresponsive"
	}
	return "(profile generic)"
}
