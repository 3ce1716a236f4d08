//go:build linux

package holdfast_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"holdfast/internal/testkit"
)

// The tests in the faults_*_test.go files run the real programs over files and filesystems that misbehave.

// answerWithin is how long any program may take over anything here. A claim is waited for for 5 s; a hang is for ever.
const answerWithin = 20 * time.Second

// memoryLimit is what no program may need, in KiB, whatever a file holds.
const memoryLimit = 200 << 10

// answer is what a program said.
type answer struct {
	t      *testing.T
	asked  string
	status int
	stdout string
	stderr string
	object map[string]any // the last line of standard output; nil when it is no JSON
}

// ask runs a program in dir and waits for its answer, which must come in time and in little memory.
func ask(t *testing.T, dir string, argv ...string) answer {
	t.Helper()
	return begin(t, dir, argv...)()
}

// begin is ask in two steps: the program runs until the returned function has waited for its answer.
func begin(t *testing.T, dir string, argv ...string) (wait func() answer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), answerWithin)
	// Not cmd.Dir: a fork that waits for a FUSE server in this very process may wait for ever.
	cmd := exec.CommandContext(ctx, "env", append([]string{"-C", dir}, argv...)...)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0") // the race detector sleeps for a second at every exit
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second
	must(t, cmd.Start())
	return func() answer {
		t.Helper()
		defer cancel()
		err := cmd.Wait()
		a := answer{t: t, asked: fmt.Sprintf("%q", argv), stdout: stdout.String(), stderr: stderr.String()}
		switch {
		case cmd.ProcessState == nil:
			t.Fatal(err)
		case ctx.Err() != nil && !cmd.ProcessState.Exited():
			t.Fatalf("%s gave no answer in %s", a.asked, answerWithin)
		}
		a.status = cmd.ProcessState.ExitCode()
		if used := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss; used > memoryLimit {
			t.Errorf("%s needed %d KiB of memory", a.asked, used)
		}
		a.parse()
		return a
	}
}

func (a *answer) parse() {
	lines := strings.Split(strings.TrimSuffix(a.stdout, "\n"), "\n")
	if json.Unmarshal([]byte(lines[len(lines)-1]), &a.object) != nil {
		a.object = nil
	}
}

// is checks the exit status and the code.
func (a answer) is(status int, code string) answer {
	a.t.Helper()
	if a.status != status || a.text("code") != code {
		a.t.Errorf("%s: status %d, code %q; want %d, %q\nstdout: %sstderr: %s", a.asked, a.status, a.text("code"), status, code,
			a.stdout, a.stderr)
	}
	return a
}

// has checks text fields, given as name, value, name, value, …
func (a answer) has(fields ...string) answer {
	a.t.Helper()
	for i := 0; i < len(fields); i += 2 {
		if got := a.text(fields[i]); got != fields[i+1] {
			a.t.Errorf("%s: %s is %q, want %q\n%s", a.asked, fields[i], got, fields[i+1], a.stdout)
		}
	}
	return a
}

// text is a field of the object, as text; members of members are named with dots. What is absent is empty.
func (a answer) text(name string) string {
	var v any = a.object
	for part := range strings.SplitSeq(name, ".") {
		members, _ := v.(map[string]any)
		v = members[part]
	}
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// follow runs the remedy that the answer names, as a person would paste it.
func (a answer) follow(dir string) answer {
	a.t.Helper()
	remedy := a.text("remedy")
	if remedy == "" {
		a.t.Fatalf("%s: no remedy\n%s", a.asked, a.stdout)
	}
	return ask(a.t, dir, "sh", "-c", remedy)
}

// The holder, and the fence token, of the leases that these tests plant.
const (
	plantedHolder = "5c0c7d3e-8a51-4a0c-9d8e-2f6b1f0f4a11"
	plantedFence  = 7
)

// leaseUntil is a lease file of plantedHolder's.
func leaseUntil(expires time.Time) string {
	return fmt.Sprintf(`{
  "holderId": %q,
  "hostname": "elsewhere",
  "acquiredAt": "2026-01-02T03:04:05.000Z",
  "expiresAt": %q,
  "durationSeconds": 900,
  "token": "0f3a8a54-6d0c-4a55-9a5e-9b0f3c9f1c2d",
  "fence": %d
}
`, plantedHolder, expires.UTC().Format("2006-01-02T15:04:05.000Z"), plantedFence)
}

// plantedJournal is a journal that confirms leaseUntil.
const plantedJournal = `{"fence":7,"op":"acquired","holderId":"5c0c7d3e-8a51-4a0c-9d8e-2f6b1f0f4a11",` +
	`"token":"0f3a8a54-6d0c-4a55-9a5e-9b0f3c9f1c2d","at":"2026-01-02T03:04:05.000Z","hostname":"elsewhere"}` + "\n"

func heldLease() string    { return leaseUntil(time.Now().Add(10 * time.Minute)) }
func expiredLease() string { return leaseUntil(time.Now().Add(-10 * time.Minute)) }

// fleetWith is a fleet with the given lease file, none if it is empty, and a journal. It returns the fleet and the lock.
func fleetWith(t *testing.T, lease string) (fleet, lock string) {
	t.Helper()
	fleet = t.TempDir()
	return fleet, plantFleet(t, fleet, lease)
}

// plantFleet is fleetWith in a directory that is there already.
func plantFleet(t *testing.T, fleet, lease string) (lock string) {
	t.Helper()
	state := filepath.Join(fleet, "state")
	must(t, os.Mkdir(state, 0o755))
	lock = filepath.Join(state, "orchestrator.lock")
	if lease != "" {
		must(t, os.WriteFile(lock, []byte(lease), 0o644))
	}
	must(t, os.WriteFile(lock+".journal", []byte(plantedJournal), 0o644))
	return lock
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// untouched returns a check that nothing below dir has changed since.
func untouched(t *testing.T, dir string) (check func(after string)) {
	t.Helper()
	before, err := testkit.Listing(dir)
	must(t, err)
	return func(after string) {
		t.Helper()
		now, err := testkit.Listing(dir)
		must(t, err)
		if now != before {
			t.Errorf("%s changed something\nbefore: %s\nnow: %s", after, before, now)
		}
	}
}

// nothingLeft checks that no claim and no staging file stayed behind.
func nothingLeft(t *testing.T, lock string) {
	t.Helper()
	for _, suffix := range []string{".mutex", ".stage"} {
		if _, err := os.Lstat(lock + suffix); err == nil {
			t.Errorf("%s was left behind", lock+suffix)
		}
	}
}

// TestKernelLeaseIsBusy holds a kernel lease (F_SETLEASE) on each of the files in turn: whoever wants to open the file
// would wait until the lease is given up, so nobody does.
func TestKernelLeaseIsBusy(t *testing.T) {
	for suffix, busy := range map[string][]string{
		"":         {"acquire", "take over", "renew", "release", "status", "verify", "list", "set aside"},
		".journal": {"acquire", "take over", "history", "set aside"},
		".mutex":   {"claim clear"},
	} {
		for _, v := range verbs {
			if suffix == ".mutex" && slices.Contains(mutations, v.name) {
				continue // they wait for the claim, whatever it is
			}
			t.Run(v.name+" "+suffix, func(t *testing.T) {
				t.Parallel()
				fleet, lock := fleetWith(t, v.lease())
				path := lock + suffix
				f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
				must(t, err)
				check := untouched(t, fleet)
				if err = testkit.KernelLease(f); err != nil {
					f.Close()
				}
				testkit.Need(t, err == nil, "kernel leases")
				a := ask(t, fleet, append([]string{"leasectl"}, v.argv...)...)
				must(t, testkit.KernelUnlease(f)) // this test would have to wait as well
				f.Close()
				switch {
				case slices.Contains(busy, v.name):
					a.is(75, "busy").has("path", filepath.Join("state", filepath.Base(path)))
				case suffix == ".mutex" && v.name == "claim inspect":
					a.is(0, "unproven").has("remedy", "none is safe: the claim cannot be read, so it cannot be named")
				default:
					a.is(v.status, v.code)
				}
				if slices.Contains(busy, v.name) || !slices.Contains(mutations, v.name) {
					check(v.name)
				}
				if suffix != ".mutex" {
					nothingLeft(t, lock)
				}
			})
		}
	}
}

// TestKernelLeaseDoesNotStopTheDoctor: what a file is can be told without opening it; its bytes would have to be waited for.
func TestKernelLeaseDoesNotStopTheDoctor(t *testing.T) {
	fleet, lock := fleetWith(t, heldLease())
	f, err := os.OpenFile(lock, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	testkit.Need(t, testkit.KernelLease(f) == nil, "kernel leases")
	ask(t, fleet, "fsdoctor", "classify", lock).is(0, "regular")
	a := ask(t, fleet, "fsdoctor", "cat", lock)
	if a.status != 75 || a.stdout != "" || !strings.Contains(a.stderr, `"code":"busy"`) {
		t.Errorf("status %d: %q, %s", a.status, a.stdout, a.stderr)
	}
}

// TestKernelLeaseOnAClaimHasNoCommand: a claim that cannot be read cannot be named, so fsdoctor prints no command that would clear it.
func TestKernelLeaseOnAClaimHasNoCommand(t *testing.T) {
	fleet, lock := fleetWith(t, heldLease())
	f, err := os.Create(lock + ".mutex")
	must(t, err)
	defer f.Close()
	testkit.Need(t, testkit.KernelLease(f) == nil, "kernel leases")
	a := ask(t, fleet, "fsdoctor", "check", "--only", "claims", "state")
	if !strings.Contains(a.stdout, `"condition":"unproven"`) || !strings.Contains(a.stdout, `"remedy":"none is safe: the claim cannot be read, so it cannot be named"`) {
		t.Errorf("status %d: %s%s", a.status, a.stdout, a.stderr)
	}
}

// TestOddPathsSurvive: a path of any bytes is printed so that it can be used again, in one line.
func TestOddPathsSurvive(t *testing.T) {
	for name, odd := range map[string]string{
		"blanks":                  " a lock .lock ",
		"newline":                 "a\nlock.lock",
		"escape":                  "\x1b[31mred\x1b[0m.lock",
		"quotes":                  `it's "$(touch x)" \` + "`touch y`" + `.lock`,
		"invalid UTF-8":           "a\xff\xfeb.lock",
		"invalid UTF-8, newline":  "\xff\n",
		"a line separator":        "a\u2028b.lock",
		"as long as a name gets":  strings.Repeat("n", 255-len(".journal")),
		"a leading dash":          "./-rf.lock",
		"a name that looks right": "orchestrator.lock.mutex.lock",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			a := ask(t, dir, "leasectl", "acquire", "--lock", odd).is(0, "acquired").hasPath(odd)
			holder := a.text("lease.holderId")
			ask(t, dir, "leasectl", "status", "--lock", odd).is(0, "held").hasPath(odd)
			ask(t, dir, "leasectl", "verify", "--lock", odd, "--holder", holder).is(0, "holds").hasPath(odd)
			ask(t, dir, "leasectl", "renew", "--lock", odd, "--holder", holder).is(0, "renewed").hasPath(odd)
			ask(t, dir, "leasectl", "acquire", "--lock", odd).is(1, "held").hasPath(odd).follow(dir).is(0, "held")
			exported := ask(t, dir, "leasectl", "verify", "--lock", odd, "--holder", holder, "--format", "sh")
			must(t, os.WriteFile(filepath.Join(dir, "env"), []byte(exported.stdout), 0o644))
			ask(t, "/", "sh", "-c", `. "$0" && leasectl verify`, filepath.Join(dir, "env")).is(0, "holds")
			ask(t, dir, "leasectl", "release", "--lock", odd, "--holder", holder).is(0, "released").hasPath(odd)
			nothingLeft(t, filepath.Join(dir, odd))

			must(t, os.WriteFile(filepath.Join(dir, odd), []byte("{"), 0o644))
			if len(odd) > 200 {
				return // the name to move it to would be too long
			}
			aside := ask(t, dir, "leasectl", "status", "--lock", odd).is(65, "corrupt").hasPath(odd).follow(dir).is(0, "set-aside")
			if left, err := os.ReadDir(dir); err != nil || len(left) != 3 {
				t.Errorf("%s left %v (%v)", aside.stdout, left, err)
			}
			ask(t, dir, "fsdoctor", "classify", odd).is(0, "absent").hasPath(odd)
		})
	}
}

// hasPath checks the path, or its bytes where it is not text, and that standard error is one plain line at most.
func (a answer) hasPath(path string) answer {
	a.t.Helper()
	if utf8.ValidString(path) {
		a.has("path", path, "pathBytes", "")
	} else {
		a.has("pathBytes", base64.StdEncoding.EncodeToString([]byte(path)))
	}
	lines := strings.Count(a.stderr, "\n")
	plain := !strings.ContainsFunc(strings.TrimSuffix(a.stderr, "\n"), func(r rune) bool { return !unicode.IsPrint(r) })
	if lines > 1 || !plain || strings.Count(a.stdout, "\n") != 1 {
		a.t.Errorf("%s: not one line: %q\n%q", a.asked, a.stderr, a.stdout)
	}
	return a
}

// TestNameTooLongForTheFilesBesideIsRefused: the lock's own name fits, the others do not.
func TestNameTooLongForTheFilesBesideIsRefused(t *testing.T) {
	for _, length := range []int{250, 255, 256, 5000} {
		t.Run(fmt.Sprint(length), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			long := strings.Repeat("n", length)
			ask(t, dir, "leasectl", "acquire", "--lock", long).is(74, "io").has("errno", "ENAMETOOLONG")
			if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
				t.Errorf("%v were left (%v)", left, err)
			}
		})
	}
	t.Run("the path", func(t *testing.T) {
		ask(t, t.TempDir(), "leasectl", "acquire", "--lock", strings.Repeat("d/", 3000)+"x").is(74, "io").has("errno", "ENAMETOOLONG")
	})
}
