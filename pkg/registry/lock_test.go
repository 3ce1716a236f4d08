package registry

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// plantLock makes a registry lock of no evidence, as its creator does before anything else, and returns it open.
func (w *world) plantLock() *os.File {
	w.t.Helper()
	f, err := os.OpenFile(filepath.Join(w.path, registryDir, lockFile), os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		w.t.Error(err)
	}
	return f
}

func TestALockThatIsAboutToBeTakenIsNoFence(t *testing.T) {
	w := newWorld(t)
	w.acquire("beside")
	lock := w.plantLock()
	defer lock.Close()
	fd := int(lock.Fd())
	time.AfterFunc(50*time.Millisecond, func() { _ = unix.Flock(fd, unix.LOCK_EX) })
	if fenced, err := w.fenced(); fenced || err != nil {
		t.Errorf("fenced %v, %v", fenced, err)
	}
	if err := unix.Flock(fd, unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	if fenced, err := w.fenced(); !fenced || err != nil {
		t.Errorf("one that nobody takes: fenced %v, %v", fenced, err)
	}
}

// TestLocksThatComeAndGoAreNotRetained: creators that are slow to take their locks, one after the other, are waited for, though
// each of their locks looks like the last.
func TestLocksThatComeAndGoAreNotRetained(t *testing.T) {
	w := newWorld(t)
	w.acquire("beside")
	lock := filepath.Join(w.path, registryDir, lockFile)
	w.plantLock().Close()
	go func() {
		defer os.Remove(lock)
		for range 8 {
			time.Sleep(80 * time.Millisecond)
			next := filepath.Join(w.dir, "next")
			if os.WriteFile(next, nil, fileMode) != nil || os.Rename(next, lock) != nil {
				return
			}
		}
	}()
	if _, err := w.Acquire(t.Context(), w.request(w.root("mine"))); err != nil {
		t.Error(err)
	}
}

func TestALockThatStaysIsRetained(t *testing.T) {
	w := newWorld(t)
	w.acquire("beside")
	w.plantLock().Close()
	before := w.read(filepath.Join(w.path, registryDir, rootsName))
	_, err := w.Acquire(t.Context(), w.request(w.root("mine")))
	var refusal *Refusal
	if !errors.As(err, &refusal) || refusal.Code != CodeUnavailable || refusal.Lock == nil || refusal.Retained {
		t.Errorf("%v", err)
	}
	if string(w.read(filepath.Join(w.path, registryDir, rootsName))) != string(before) {
		t.Error("something was changed")
	}
	if _, err := w.Access(filepath.Join(w.dir, "beside")); code(err) != CodeUnavailable {
		t.Errorf("access: %v", err)
	}
	if in := w.Inspect(filepath.Join(w.dir, "beside")); !in.Fenced || in.State != State(Idle) {
		t.Errorf("%+v", in)
	}
}

// TestAFailureFencesFromTheFirstWriteOn stops an acquire and a release by a file that appears or changes before each step: before the
// first write everything is as it was and the lock is gone; after it the lock stays with everything as it stands.
func TestAFailureFencesFromTheFirstWriteOn(t *testing.T) {
	for _, verb := range []string{"acquire", "release"} {
		steps := map[string][]Step{"acquire": AcquireOrder, "release": ReleaseOrder}[verb]
		for n, at := range append([]string{"locked"}, stepNames(steps[:len(steps)-1])...) {
			t.Run(verb+" after "+at, func(t *testing.T) {
				w := newWorld(t)
				receipt := ""
				if verb == "release" {
					receipt = w.acquire("root").Receipt
				}
				w.iv.at = func(step string) {
					if step == at {
						w.write(w.file("root", hostConfigFile), []byte("{}\n"))
					}
				}
				w.root("root")
				if err := os.MkdirAll(filepath.Dir(w.file("root", "x")), 0o700); err != nil {
					t.Fatal(err)
				}
				var err error
				if verb == "acquire" {
					request := w.request(w.root("root"))
					if at == "locked" {
						request.Policy = identityOf(nil) // not that of the file that appears
					}
					_, err = w.Acquire(t.Context(), request)
				} else {
					_, err = w.Release(t.Context(), receipt)
				}
				var refusal *Refusal
				if !errors.As(err, &refusal) || refusal.Retained != (n > 0) {
					t.Fatalf("%v", err)
				}
				h := w.open(testOptions())
				reg, _ := h.Registry()
				if reg.Fenced != (n > 0) {
					t.Errorf("fenced %v after %d steps", reg.Fenced, n)
				}
			})
		}
	}
}

func stepNames(steps []Step) (names []string) {
	for _, s := range steps {
		names = append(names, s.Name)
	}
	return names
}
