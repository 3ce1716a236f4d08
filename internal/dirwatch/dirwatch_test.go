package dirwatch

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.Main(m, map[string]testkit.Part{"no proc": withoutProc})
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// watch opens a fresh directory and watches it.
func watch(t *testing.T) (dir string, w *Watcher) {
	t.Helper()
	dir = t.TempDir()
	f, err := os.Open(dir)
	check(t, err)
	t.Cleanup(func() { f.Close() })
	w = New(int(f.Fd()))
	t.Cleanup(w.Close)
	testkit.Need(t, w.events(), "inotify")
	return dir, w
}

const (
	long  = time.Hour
	short = 30 * time.Millisecond
)

func TestAWaitEndsWhenANameGoes(t *testing.T) {
	for what, gone := range map[string]func(dir string) error{
		"deleted": func(dir string) error { return os.Remove(filepath.Join(dir, "name")) },
		"renamed": func(dir string) error { return os.Rename(filepath.Join(dir, "name"), filepath.Join(dir, "other")) },
		"moved out of the directory": func(dir string) error {
			return os.Rename(filepath.Join(dir, "name"), filepath.Join(filepath.Dir(dir), "name"))
		},
		"replaced": func(dir string) error { return os.Rename(filepath.Join(dir, "second"), filepath.Join(dir, "name")) },
	} {
		for when, delay := range map[string]time.Duration{"before the wait": 0, "during the wait": short} {
			t.Run(what+" "+when, func(t *testing.T) {
				dir, w := watch(t)
				for _, name := range []string{"name", "second"} {
					check(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
				}
				if delay == 0 {
					check(t, gone(dir))
				} else {
					time.AfterFunc(delay, func() { _ = gone(dir) })
				}
				testkit.Within(t, 20*time.Second, func() {
					if !w.Wait(long) {
						t.Error("the wait ended without an event")
					}
				})
				// One event is reported once.
				if w.Wait(0) {
					t.Error("a second event")
				}
			})
		}
	}
}

func TestAWaitEndsWithItsTime(t *testing.T) {
	dir, w := watch(t)
	check(t, os.WriteFile(filepath.Join(dir, "created"), []byte("and written"), 0o600))
	for _, d := range []time.Duration{short, 0, -time.Second} {
		before := time.Now()
		if w.Wait(d) {
			t.Errorf("%s: an event, although nothing has gone", d)
		}
		if waited := time.Since(before); waited < d {
			t.Errorf("%s: back after %s", d, waited)
		}
	}
}

func TestManyEventsAreOne(t *testing.T) {
	dir, w := watch(t)
	for range 2000 {
		path := filepath.Join(dir, "a name that makes the event rather long")
		check(t, os.WriteFile(path, nil, 0o600))
		check(t, os.Remove(path))
	}
	events := 0
	for w.Wait(0) {
		events++
	}
	if events == 0 || events > 2 {
		t.Errorf("%d wake-ups", events)
	}
}

func TestWithoutEventsTimePasses(t *testing.T) {
	closed, err := unix.Open(t.TempDir(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	check(t, err)
	check(t, unix.Close(closed))
	for _, fd := range []int{closed, -1, 1 << 20} {
		w := New(fd)
		if w.events() || w.Poll() != pollAlone {
			t.Errorf("descriptor %d is watched", fd)
		}
		timePasses(w, t.Errorf)
		w.Close()
	}
	_, w := watch(t)
	if w.Poll() != pollUnderEvents {
		t.Errorf("the poll under events is %s", w.Poll())
	}
}

func timePasses(w *Watcher, errorf func(string, ...any)) {
	before := time.Now()
	if w.Wait(short) {
		errorf("an event of nothing")
	}
	if waited := time.Since(before); waited < short {
		errorf("back after %s", waited)
	}
}

func TestWithoutProcTimePasses(t *testing.T) {
	testkit.NeedRoot(t)
	testkit.Play(t, testkit.Isolated(testkit.Command("no proc", t.TempDir()), syscall.CLONE_NEWNS))
}

func withoutProc(args []string) error {
	f, err := os.Open(args[0])
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Mount("tmpfs", "/proc", "tmpfs", 0, ""); err != nil {
		return err
	}
	var c testkit.Checks
	w := New(int(f.Fd()))
	defer w.Close()
	c.That(!w.events(), "it is watched")
	timePasses(w, func(format string, args ...any) { c.That(false, format, args...) })
	return c.Err()
}

// patience is what decides when to look again.
type patience interface {
	Wait(time.Duration)
	Close()
}

var kinds = map[string]func(dirfd int) patience{
	"waiter": func(dirfd int) patience { return NewWaiter(dirfd) },
	"crowd":  func(dirfd int) patience { return crowd{NewCrowd(dirfd)} },
}

// crowd is a Crowd without a context.
type crowd struct{ *Crowd }

func (c crowd) Wait(d time.Duration) { c.Crowd.Wait(context.Background(), d) }

func TestACrowdHeedsItsContext(t *testing.T) {
	f, err := os.Open(t.TempDir())
	check(t, err)
	defer f.Close()
	ctx, cancel := context.WithCancel(context.Background())
	c := NewCrowd(int(f.Fd()))
	defer c.Close()
	c.Wait(ctx, long) // the first only begins the watch
	time.AfterFunc(short, cancel)
	testkit.Within(t, 20*time.Second, func() { c.Wait(ctx, time.Hour) })
}

// Whatever the watch sees or misses, whoever looks again each time finds that the name is free, soon after it is.
func TestWaitingComesBackAgainAndAgain(t *testing.T) {
	for kind, make := range kinds {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "name")
			f, err := os.Open(dir)
			check(t, err)
			defer f.Close()
			for _, fd := range []int{int(f.Fd()), -1} {
				check(t, os.WriteFile(path, nil, 0o600))
				time.AfterFunc(short, func() { os.Remove(path) })
				testkit.Within(t, 20*time.Second, func() {
					w := make(fd)
					defer w.Close()
					for {
						if _, err := os.Lstat(path); os.IsNotExist(err) {
							return
						}
						w.Wait(long)
					}
				})
			}
		})
	}
}

func TestWaitingNeverTakesLongerThanItIsTold(t *testing.T) {
	for kind, make := range kinds {
		t.Run(kind, func(t *testing.T) {
			f, err := os.Open(t.TempDir())
			check(t, err)
			defer f.Close()
			w := make(int(f.Fd()))
			defer w.Close()
			testkit.Within(t, 20*time.Second, func() {
				for range 300 {
					w.Wait(time.Microsecond)
				}
				w.Wait(0)
				w.Wait(-time.Second)
			})
		})
	}
}

func TestJitterStaysWithinHalfOfItsLength(t *testing.T) {
	const d = 10 * time.Millisecond
	seen := map[bool]bool{}
	for range 1000 {
		j := jitter(d)
		if j < d/2 || j >= d*3/2 {
			t.Fatalf("%s", j)
		}
		seen[j < d] = true
	}
	if len(seen) != 2 {
		t.Error("it does not spread to both sides")
	}
}
