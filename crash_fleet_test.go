package holdfast_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/internal/testkit/crash"
)

// crashFleet is a fleet directory of one crash, and leasectl acting on its lease.
type crashFleet struct{ dir string }

func newCrashFleet(t testing.TB) crashFleet { return crashFleet{t.TempDir()} }

const crashLock = "orchestrator.lock"

// path is the path of the lease file, or of a file beside it.
func (f crashFleet) path(suffix string) string {
	return filepath.Join(f.dir, "state", crashLock+suffix)
}

// plant makes a state file.
func (f crashFleet) plant(t testing.TB, suffix, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(f.path("")), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.path(suffix), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// run is a leasectl command on the fleet, to be killed.
func (f crashFleet) run(args ...string) crash.Run {
	return crash.Run{
		Path: "leasectl", Args: append(args, "--fleet", f.dir), Dir: f.dir,
		State: []string{filepath.Dir(f.path("")), f.path(""), f.path(".mutex"), f.path(".stage"), f.path(".journal")},
	}
}

// crashFiles are the contents in the state directory by name, without the lock's own; nil when there is no directory.
type crashFiles map[string]string

// files reads everything in the state directory. Whatever a crash leaves is a regular file of this lease.
func (f crashFleet) files(t testing.TB) crashFiles {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(f.path("")))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	files := crashFiles{}
	for _, e := range entries {
		suffix, ours := strings.CutPrefix(e.Name(), crashLock)
		if !ours || !e.Type().IsRegular() {
			t.Fatalf("the state directory has %s", e)
		}
		content, err := os.ReadFile(f.path(suffix))
		if err != nil {
			t.Fatal(err)
		}
		files[suffix] = string(content)
	}
	return files
}

// has reports whether the file is there, empty or not.
func (files crashFiles) has(suffix string) bool {
	_, there := files[suffix]
	return there
}

// same reports whether the file is in both or neither, with the same bytes.
func (files crashFiles) same(other crashFiles, suffix string) bool {
	return files.has(suffix) == other.has(suffix) && files[suffix] == other[suffix]
}

// crashAnswer is a command's status and the first object it printed.
type crashAnswer struct {
	status int
	output string

	Code        string
	Reason      string
	Remedy      string
	Fingerprint string
	Lease       *crashLease
	Claim       *struct{ State, Token string }
	Stage       *struct{ Kind string }
}

// leasectl runs a verb on the fleet.
func (f crashFleet) leasectl(t testing.TB, args ...string) crashAnswer {
	t.Helper()
	return f.command(t, "leasectl", append(args, "--fleet", f.dir)...)
}

// paste runs a remedy as it was printed, in a shell.
func (f crashFleet) paste(t testing.TB, remedy string) crashAnswer {
	t.Helper()
	return f.command(t, "sh", "-c", remedy)
}

func (f crashFleet) command(t testing.TB, name string, args ...string) (a crashAnswer) {
	t.Helper()
	a.status, a.output = crashCommand(t, f.dir, os.Environ(), &a, name, args...)
	return a
}

// crashCommand runs a command in dir with env and decodes the first object that it printed, if it printed any.
func crashCommand(t testing.TB, dir string, env []string, object any, name string, args ...string) (status int, output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(slices.Clip(env), "GORACE=atexit_sleep_ms=0") // the race detector sleeps for a second at every exit
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	status = cmd.ProcessState.ExitCode()
	output = fmt.Sprintf("%s %q: status %d\n%s%s", name, args, status, &stdout, &stderr)
	if stdout.Len() > 0 {
		if err := json.NewDecoder(&stdout).Decode(object); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
	}
	return status, output
}

// must is leasectl with the status and code that are expected.
func (f crashFleet) must(t testing.TB, status int, code string, args ...string) crashAnswer {
	t.Helper()
	a := f.leasectl(t, args...)
	a.expect(t, status, code)
	return a
}

func (a crashAnswer) expect(t testing.TB, status int, code string) {
	t.Helper()
	if a.status != status || a.Code != code {
		t.Fatalf("want status %d and code %s: %s", status, code, a.output)
	}
}

// crashLease is a lease file as the protocol writes it; note is another program's member.
type crashLease struct {
	HolderID        string  `json:"holderId"`
	Hostname        string  `json:"hostname"`
	AcquiredAt      string  `json:"acquiredAt"`
	ExpiresAt       string  `json:"expiresAt"`
	DurationSeconds float64 `json:"durationSeconds"`
	Token           string  `json:"token"`
	Fence           uint64  `json:"fence,omitempty"`
	Label           string  `json:"label,omitempty"`
	Note            string  `json:"note,omitempty"`
}

func (l crashLease) encode() string {
	b, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		panic(err)
	}
	return string(b) + "\n"
}

// expires is the expiry, which a complete lease has.
func (l crashLease) expires() time.Time { return crashTime(l.ExpiresAt) }

func crashTime(text string) time.Time {
	at, err := time.Parse("2006-01-02T15:04:05.000Z", text)
	if err != nil {
		return time.Time{}
	}
	return at
}

// parseCrashLease accepts a complete lease file, laid out byte for byte as the protocol says.
func parseCrashLease(content string) (crashLease, error) {
	var l crashLease
	if err := json.Unmarshal([]byte(content), &l); err != nil {
		return l, err
	}
	switch {
	case l.encode() != content:
		return l, errors.New("it is not laid out as the protocol says")
	case l.HolderID == "" || l.Token == "" || l.DurationSeconds <= 0 || l.expires().IsZero() || crashTime(l.AcquiredAt).IsZero():
		return l, errors.New("it is not complete")
	}
	return l, nil
}

// crashEntry is a journal line.
type crashEntry struct {
	Fence    uint64 `json:"fence"`
	Op       string `json:"op"`
	HolderID string `json:"holderId"`
	Token    string `json:"token"`
	At       string `json:"at"`
	Hostname string `json:"hostname"`
	Label    string `json:"label,omitempty"`
}

func (e crashEntry) line() string {
	b, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	return string(b) + "\n"
}

// parseCrashJournal reads a journal, all of whose lines must be whole, and returns the highest number in it. Those of
// acquires and takeovers must grow.
func parseCrashJournal(journal string) (entries []crashEntry, highest uint64, err error) {
	var taken uint64
	for text := range strings.Lines(journal) {
		var e crashEntry
		if err := json.Unmarshal([]byte(text), &e); err != nil || e.line() != text {
			return nil, 0, fmt.Errorf("the journal has the line %q: %v", text, err)
		}
		if e.Op == "acquired" || e.Op == "taken-over" {
			if e.Fence <= taken {
				return nil, 0, fmt.Errorf("the fence token %d follows %d in the journal", e.Fence, taken)
			}
			taken = e.Fence
		}
		entries = append(entries, e)
		highest = max(highest, e.Fence)
	}
	return entries, highest, nil
}
