package lease

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/internal/testkit"
	"holdfast/pkg/procid"
)

// t0 is when the tests' clocks begin. It has microseconds, which no file may show.
var t0 = time.Date(2026, 11, 30, 5, 3, 22, 123_456_000, time.UTC)

// clock is a wall clock that tests set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

func (c *clock) add(d time.Duration) { c.set(c.Now().Add(d)) }

// rig is a directory with one lease in it, and the clock its participants share.
type rig struct {
	*testing.T
	*clock
	dir  string
	path string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	dir := filepath.Join(testkit.MemDir(t), "state")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return &rig{T: t, clock: &clock{now: t0}, dir: dir, path: filepath.Join(dir, "orchestrator.lock")}
}

// player is one participant. Its identifiers are NAME-1, NAME-2 …: of an acquire the first is the holder id, the second
// the token.
type player struct {
	*Store
	clock *clock
}

// player opens the lease as a participant of that name, on the rig's clock.
func (r *rig) player(name string) *player {
	r.Helper()
	return r.playerWith(name, r.clock)
}

// playerWith is player with a clock of its own.
func (r *rig) playerWith(name string, c *clock) *player {
	r.Helper()
	var mu sync.Mutex
	n := 0
	s, err := Open(r.path, Options{
		Now: c.Now,
		NewID: func() string {
			mu.Lock()
			defer mu.Unlock()
			n++
			return fmt.Sprintf("%s-%d", name, n)
		},
		Self: sync.OnceValues(func() (procid.Identity, error) {
			id, err := procid.Self()
			id.Hostname = "host-of-" + name
			return id, err
		}),
	})
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { s.Close() })
	return &player{Store: s, clock: c}
}

// meanwhile runs f once, when the player's next mutation reaches the step.
func (p *player) meanwhile(step string, f func()) {
	p.iv.at = func(s string) {
		if s == step && f != nil {
			once := f
			f = nil
			once()
		}
	}
}

// act is something a participant does.
type act func(*player) (*Outcome, error)

func acquire(p *player) (*Outcome, error) { return p.Acquire(context.Background(), AcquireRequest{}) }

func takeOver(p *player) (*Outcome, error) {
	return p.Acquire(context.Background(), AcquireRequest{TakeOver: true})
}

func renewOf(holder string) act {
	return func(p *player) (*Outcome, error) { return p.Renew(context.Background(), holder, 0) }
}

func releaseOf(holder string) act {
	return func(p *player) (*Outcome, error) { return p.Release(context.Background(), holder) }
}

// planted is a lease of holder with fence token 7, as another run of this program left it: valid until expires.
func planted(holder string, expires time.Time) *Lease {
	return &Lease{
		HolderID: holder, Hostname: "elsewhere", AcquiredAt: FormatTime(expires.Add(-900 * time.Second)),
		ExpiresAt: expires, Duration: 900, Token: "token-of-" + holder, Fence: 7,
	}
}

// plant puts a lease file there without the protocol, whole, as an editor would.
func (r *rig) plant(content []byte) {
	r.Helper()
	aside := r.dir + ".edited"
	r.write(aside, content)
	if err := os.Rename(aside, r.path); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) write(path string, content []byte) {
	r.Helper()
	if err := os.WriteFile(path, content, 0o644); err != nil {
		r.Fatal(err)
	}
}

// remove unlinks the file beside the lease with that suffix; "" is the lease itself.
func (r *rig) remove(suffix string) {
	r.Helper()
	if err := os.Remove(r.path + suffix); err != nil {
		r.Fatal(err)
	}
}

// bytes is the content of the file beside the lease with that suffix; "" is the lease itself. Absent reads as "".
func (r *rig) bytes(suffix string) string {
	r.Helper()
	b, err := os.ReadFile(r.path + suffix)
	if err != nil && !os.IsNotExist(err) {
		r.Fatal(err)
	}
	return string(b)
}

// lease is the lease in the file; nil when absent.
func (r *rig) lease() *Lease {
	r.Helper()
	content := r.bytes("")
	if content == "" {
		return nil
	}
	l, err := Parse([]byte(content))
	if err != nil {
		r.Fatalf("the lease file cannot be read: %v\n%s", err, content)
	}
	return l
}

// names says whose the lease in the file is.
func (r *rig) names(holder string) {
	r.Helper()
	l := r.lease()
	switch {
	case holder == "" && l != nil:
		r.Errorf("the file names %s, want no lease", l.HolderID)
	case holder != "" && l == nil:
		r.Errorf("there is no lease, want one of %s", holder)
	case l != nil && l.HolderID != holder:
		r.Errorf("the file names %s, want %s", l.HolderID, holder)
	}
}

// tidy fails when something is left beside the lease and its journal.
func (r *rig) tidy() {
	r.Helper()
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		r.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != filepath.Base(r.path) && e.Name() != filepath.Base(r.path)+".journal" {
			r.Errorf("left behind: %s", e.Name())
		}
	}
}

// entries are the journal's lines.
func (r *rig) entries() []Entry {
	r.Helper()
	var all []Entry
	for line := range strings.Lines(r.bytes(".journal")) {
		e, err := parseEntry([]byte(line))
		if err != nil {
			r.Fatalf("journal line %q: %v", line, err)
		}
		all = append(all, e)
	}
	return all
}

// fences are the numbers that the journal's acquires and takeovers were given.
func fences(entries []Entry) []uint64 {
	var all []uint64
	for _, e := range entries {
		if e.Op == OpAcquired || e.Op == OpTakenOver {
			all = append(all, e.Fence)
		}
	}
	return all
}

// grow fails unless the numbers strictly increase.
func grow(t *testing.T, numbers []uint64) {
	t.Helper()
	for i := 1; i < len(numbers); i++ {
		if numbers[i] <= numbers[i-1] {
			t.Fatalf("fence tokens do not increase: %d after %d in %v", numbers[i], numbers[i-1], numbers)
		}
	}
}

// errCode is the stable code of an error; "" for none.
func errCode(err error) string {
	var coded interface{ ErrorCode() string }
	switch {
	case err == nil:
		return ""
	case errors.As(err, &coded):
		return coded.ErrorCode()
	}
	return err.Error()
}

// refused fails unless err is a refusal of that code, and returns it.
func refused(t *testing.T, err error, code string) *Refusal {
	t.Helper()
	var r *Refusal
	if !errors.As(err, &r) || r.Code != code {
		t.Fatalf("got %v, want a refusal of code %s", err, code)
	}
	return r
}

// succeeded fails unless a mutation did, without a warning, and returns its outcome.
func succeeded(t *testing.T, out *Outcome, err error) *Outcome {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Warnings) > 0 {
		t.Fatalf("warnings: %q", out.Warnings)
	}
	return out
}

// equal fails unless got is what is wanted.
func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// at is the path of the file beside the lease with that suffix.
func (r *rig) at(suffix string) string { return r.path + suffix }
