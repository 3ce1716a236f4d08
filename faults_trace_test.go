//go:build linux

package holdfast_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

// call is a system call that a program made, as strace shows it.
type call struct {
	name string // openat, fstat, …
	text string // the rest of the line; each descriptor comes with its file's path
}

var callLine = regexp.MustCompile(`^[0-9.]+ ([a-z0-9_]+)\((.*)$`)

// trace runs a program and returns its system calls in the order in which they began, of all its threads.
func trace(t *testing.T, argv ...string) (answer, []call) {
	t.Helper()
	testkit.NeedTool(t, "strace")
	out := filepath.Join(t.TempDir(), "trace")
	a := ask(t, "/", append([]string{"strace", "-ff", "-ttt", "-y", "-s", "512", "-o", out}, argv...)...)
	files, err := filepath.Glob(out + ".*")
	must(t, err)
	var lines []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		lines = append(lines, strings.Split(string(text), "\n")...)
	}
	slices.Sort(lines) // each begins with its time
	var calls []call
	for _, line := range lines {
		if m := callLine.FindStringSubmatch(line); m != nil {
			calls = append(calls, call{m[1], m[2]})
		}
	}
	if len(calls) < 50 {
		t.Fatalf("%s: the trace has only %d calls", a.asked, len(calls))
	}
	return a, calls
}

// on keeps the calls that are about something below dir.
func on(calls []call, dir string) (kept []call) {
	for _, c := range calls {
		if strings.Contains(c.text, dir) {
			kept = append(kept, c)
		}
	}
	return kept
}

// alters reports whether a call may change a file, or a directory, or a file's metadata.
func (c call) alters() bool {
	switch c.name {
	case "open", "openat", "openat2":
		return regexp.MustCompile(`O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND|O_TMPFILE`).MatchString(c.text)
	case "write", "writev", "pwrite64", "sendfile", "copy_file_range", "splice", "fallocate", "truncate", "ftruncate",
		"rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "unlink", "unlinkat", "rmdir",
		"mkdir", "mkdirat", "mknod", "mknodat", "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown",
		"fchownat", "utime", "utimes", "utimensat", "futimesat", "setxattr", "lsetxattr", "fsetxattr", "creat":
		return true
	}
	return false
}

// zoo is a fleet with everything in it that the readers may meet, and the paths of what must not be opened.
func zoo(t *testing.T) (fleet string, odd []string) {
	t.Helper()
	testkit.NeedRoot(t)
	fleet, lock := fleetWith(t, heldLease())
	state := filepath.Dir(lock)
	must(t, os.WriteFile(lock+".mutex", []byte("another program's token"), 0o600))
	must(t, unix.Mkfifo(lock+".stage", 0o666))
	odd = append(odd, lock+".stage")
	for i, k := range kinds {
		for suffix, lease := range map[string]string{"": "", ".mutex": heldLease(), ".stage": heldLease(), ".journal": heldLease()} {
			path := filepath.Join(state, string(rune('a'+i))+strings.TrimPrefix(suffix, ".")+".lock")
			if lease != "" {
				must(t, os.WriteFile(path, []byte(lease), 0o644))
			}
			if undisturbed := k.plant(t, path+suffix); undisturbed != nil {
				t.Cleanup(func() { undisturbed(t) })
			}
			odd = append(odd, path+suffix)
		}
	}
	return fleet, odd
}

// opensOnly checks that nothing in odd was opened, but by O_PATH, which opens no driver and no other end. An exclusive
// creation opens what it made itself.
func opensOnly(t *testing.T, asked string, calls []call, odd []string) {
	t.Helper()
	path := regexp.MustCompile(`<([^<>]*)[^"]*>, "([^"]*)"`)
	for _, c := range calls {
		if !strings.HasPrefix(c.name, "open") || strings.Contains(c.text, "O_PATH") || strings.Contains(c.text, "O_EXCL") {
			continue
		}
		for _, m := range path.FindAllStringSubmatch(c.text, -1) {
			name := m[2]
			if !filepath.IsAbs(name) {
				name = filepath.Join(m[1], name)
			}
			if slices.Contains(odd, name) {
				t.Errorf("%s: %s(%s", asked, c.name, c.text)
			}
		}
		for _, forbidden := range odd { // what a descriptor turned out to lead to
			if _, led, _ := strings.Cut(c.text, ") = "); strings.Contains(led, "<"+forbidden) {
				t.Errorf("%s: %s(%s", asked, c.name, c.text)
			}
		}
	}
}

// TestReadersOnlyRead traces everything that promises to look and not to touch. # case B48
func TestReadersOnlyRead(t *testing.T) {
	fleet, odd := zoo(t)
	lock := filepath.Join(fleet, "state", "orchestrator.lock")
	check := untouched(t, fleet)
	classify := append([]string{"fsdoctor", "classify"}, odd...)
	for _, argv := range [][]string{
		{"leasectl", "status", "--lock", lock},
		{"leasectl", "verify", "--lock", lock, "--holder", plantedHolder},
		{"leasectl", "list", "--fleet", fleet},
		{"leasectl", "history", "--lock", lock},
		{"leasectl", "claim", "inspect", "--lock", lock},
		append(classify, lock, filepath.Join(fleet, "state")),
		{"fsdoctor", "cat", lock},
		{"fsdoctor", "cat", odd[0]},
	} {
		a, calls := trace(t, argv...)
		here := on(calls, fleet)
		if len(here) < 3 {
			t.Errorf("%s: only %d calls are about the fleet", a.asked, len(here))
		}
		for _, c := range here {
			if c.alters() && !strings.HasPrefix(c.text, "1<") && !strings.HasPrefix(c.text, "2<") {
				t.Errorf("%s: %s(%s", a.asked, c.name, c.text)
			}
		}
		opensOnly(t, a.asked, calls, odd)
		check(a.asked)
	}
}

// TestMutationsOpenRegularFilesOnly traces mutations that meet everything else.
func TestMutationsOpenRegularFilesOnly(t *testing.T) {
	fleet, odd := zoo(t)
	var lines []string
	for _, path := range odd[1:] { // the first lies beside a claim that every mutation would wait for
		name, _, _ := strings.Cut(filepath.Base(path), ".lock")
		if k := kinds[name[0]-'a']; strings.Contains(k.name, " with ") || strings.Contains(k.name, "symlink ") {
			continue // one of a kind will do
		}
		for _, verb := range []string{
			"acquire", "renew --holder " + plantedHolder, "release --holder " + plantedHolder,
			"claim clear --token T --force", "set-aside --fingerprint sha256:0",
		} {
			lines = append(lines, "leasectl "+verb+" --fleet "+fleet+" --name "+name)
		}
	}
	script := filepath.Join(t.TempDir(), "script")
	must(t, os.WriteFile(script, []byte(strings.Join(lines, "\n")), 0o644))
	testkit.NeedTool(t, "strace")
	out := filepath.Join(t.TempDir(), "trace")
	// One strace for all; only the calls that can open something matter.
	ask(t, "/", "strace", "-f", "-y", "-s", "512", "-e", "trace=open,openat,openat2", "-o", out, "sh", script)
	text, err := os.ReadFile(out)
	must(t, err)
	var calls []call
	for line := range strings.Lines(string(text)) {
		if _, rest, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " openat("); ok {
			calls = append(calls, call{"openat", rest})
		}
	}
	if n := len(on(calls, fleet)); n < 2*len(lines) {
		t.Fatalf("only %d opens in %d mutations are about the fleet", n, len(lines))
	}
	opensOnly(t, "a mutation", calls, odd)
}

// traced is what a mutation does between the creation of its claim and the claim's removal.
type traced struct {
	t     *testing.T
	calls []call
}

// inside traces a mutation.
func inside(t *testing.T, fleet, code string, argv ...string) traced {
	t.Helper()
	a, calls := trace(t, append(argv, "--fleet", fleet)...)
	a.is(0, code)
	calls = on(calls, fleet)
	first := slices.IndexFunc(calls, func(c call) bool {
		return c.name == "openat" && strings.Contains(c.text, "O_EXCL") && strings.Contains(c.text, ".lock.mutex")
	})
	last := slices.IndexFunc(calls, func(c call) bool {
		return strings.HasPrefix(c.name, "unlink") && strings.Contains(c.text, ".lock.mutex")
	})
	if first < 0 || last < first {
		t.Fatalf("%s: no claim in %d calls", a.asked, len(calls))
	}
	if n := last - first + 1; n >= 50 {
		t.Errorf("%s: %d system calls on state files", a.asked, n)
	}
	if !strings.Contains(calls[first].text, "O_NOFOLLOW") || !strings.Contains(calls[first].text, ", 0600)") {
		t.Errorf("%s: the claim is made by %s", a.asked, calls[first].text)
	}
	return traced{t, calls[first : last+1]}
}

// syncs checks how many syncs there were.
func (tr traced) syncs(want int) traced {
	tr.t.Helper()
	n := 0
	for _, c := range tr.calls {
		if strings.Contains(c.name, "sync") {
			n++
		}
	}
	if n != want {
		tr.t.Errorf("%d syncs, not %d:\n%v", n, want, tr.calls)
	}
	return tr
}

// inOrder checks that calls happened one after another: each is the call's name and a part of its text.
func (tr traced) inOrder(steps ...string) {
	tr.t.Helper()
	at := 0
	for _, step := range steps {
		name, part, _ := strings.Cut(step, " ")
		found := slices.IndexFunc(tr.calls[at:], func(c call) bool { return c.name == name && strings.Contains(c.text, part) })
		if found < 0 {
			tr.t.Fatalf("%q does not come where it should in\n%v", step, tr.calls)
		}
		at += found + 1
	}
}

// TestMutationsSyncBeforeTheyPublish is the order of a power cut's survivors: content before its name, a new journal's name
// before the lease. # case B43
func TestMutationsSyncBeforeTheyPublish(t *testing.T) {
	fleet := t.TempDir()
	inside(t, fleet, "acquired", "leasectl", "acquire").syncs(3).inOrder(
		"flock LOCK_EX|LOCK_NB",
		"write lock.mutex>", // the evidence, once the lock is held
		`openat lock.stage", O_WRONLY|O_CREAT|O_EXCL|O_NOFOLLOW|O_CLOEXEC, 0666)`,
		`write "{\"fence\":1`,
		"fdatasync lock.stage>",
		`renameat2 "orchestrator.lock.journal", RENAME_NOREPLACE`,
		"fsync /state>",
		`openat lock.stage", O_WRONLY|O_CREAT|O_EXCL`,
		`write "{\n  \"holderId\"`,
		"fdatasync lock.stage>",
		`renameat2 "orchestrator.lock", RENAME_NOREPLACE`,
		"pread64 orchestrator.lock>", // read back
		"newfstatat lock.mutex",      // still ours
		"unlinkat lock.mutex",
	)
	lock := filepath.Join(fleet, "state", "orchestrator.lock")
	must(t, os.WriteFile(lock, []byte(heldLease()), 0o644))
	inside(t, fleet, "renewed", "leasectl", "renew", "--holder", plantedHolder).syncs(1).inOrder(
		"fdatasync lock.stage>", "renameat orchestrator.lock", "pread64 orchestrator.lock>", "newfstatat lock.mutex",
		"write lock.journal>", "unlinkat lock.mutex",
	)
	must(t, os.WriteFile(lock, []byte(expiredLease()), 0o644))
	inside(t, fleet, "acquired", "leasectl", "acquire", "--take-over").syncs(2).inOrder(
		"write lock.journal>", "fdatasync lock.journal>", "write lock.stage>", "fdatasync lock.stage>",
		"renameat orchestrator.lock", "pread64 orchestrator.lock>", "newfstatat lock.mutex", "unlinkat lock.mutex",
	)
	must(t, os.WriteFile(lock, []byte(heldLease()), 0o644))
	inside(t, fleet, "released", "leasectl", "release", "--holder", plantedHolder).syncs(0).inOrder(
		`unlinkat "orchestrator.lock"`, "newfstatat lock.mutex", "write lock.journal>", "unlinkat lock.mutex",
	)
}

// TestVerifyReadsTheLockAlone: the guard for hooks looks at one file.
func TestVerifyReadsTheLockAlone(t *testing.T) {
	fleet, lock := fleetWith(t, heldLease())
	_, calls := trace(t, "leasectl", "verify", "--lock", lock, "--holder", plantedHolder)
	for _, c := range on(calls, fleet) {
		if strings.Contains(c.text, ".lock.") {
			t.Errorf("%s(%s", c.name, c.text)
		}
	}
}
