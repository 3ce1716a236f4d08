package lease

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// skewed are a wall clock and a boot clock that run with the bubble's time and can be set apart from it.
type skewed struct {
	mu         sync.Mutex
	started    time.Time
	wall, boot time.Duration
}

func (s *skewed) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Round(0).Add(s.wall)
}

func (s *skewed) Boottime() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Hour + time.Since(s.started) + s.boot
}

// stepWall sets the wall clock forward, or back.
func (s *skewed) stepWall(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wall += d
}

// suspend lets time pass in which nothing of this process ran: no timer has moved, and both clocks have.
func (s *skewed) suspend(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wall += d
	s.boot += d
}

// kept is a lease that a keeper keeps, on real files, in a bubble of time that passes only when everybody sleeps.
type kept struct {
	*testing.T
	skewed
	*Store
	keeper   *Keeper
	acquired time.Time // in the bubble's time
	path     string

	mu     sync.Mutex
	events []keptEvent
	hook   func(step string) // the next mutation's steps go through it
}

// keptEvent is an event with the time since the acquire.
type keptEvent struct {
	KeeperEvent
	at time.Duration
}

// keeping runs f in a bubble on a keeper of a fresh lease, and stops the keeper after it. The bubble fails the test when a
// goroutine of the keeper is left.
func keeping(t *testing.T, duration, grace time.Duration, f func(k *kept)) {
	t.Helper()
	keepingAfter(t, func(*kept) {}, duration, grace, f)
}

// keepingAfter is keeping with something to set up before the directory is opened.
func keepingAfter(t *testing.T, before func(k *kept), duration, grace time.Duration, f func(k *kept)) {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "holdfast-keeper-")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	synctest.Test(t, func(t *testing.T) {
		k := &kept{T: t, path: filepath.Join(dir, "orchestrator.lock")}
		k.skewed.started = time.Now()
		before(k)
		k.Store, err = Open(k.path, Options{Now: k.Now, Boottime: k.Boottime})
		if err != nil {
			t.Fatal(err)
		}
		defer k.Store.Close()
		k.Store.iv.claimBound = 0 // who waits for a claim waits in the kernel, where the bubble's time stands still
		k.Store.iv.at = k.reached
		k.acquired = time.Now()
		out, err := k.Acquire(context.Background(), AcquireRequest{Duration: duration})
		if err != nil {
			t.Fatal(err)
		}
		k.keeper = k.Keep(out, grace, k.note)
		defer k.keeper.Stop(context.Background())
		f(k)
	})
}

func (k *kept) note(e KeeperEvent) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.events = append(k.events, keptEvent{e, time.Since(k.acquired)})
}

// named are the events of a name so far.
func (k *kept) named(name string) (found []keptEvent) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range k.events {
		if e.Name == name {
			found = append(found, e)
		}
	}
	return found
}

// meanwhile runs f once, when a mutation reaches the step.
func (k *kept) meanwhile(step string, f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.hook = func(at string) {
		if at == step {
			k.mu.Lock()
			k.hook = nil
			k.mu.Unlock()
			f()
		}
	}
}

func (k *kept) reached(at string) {
	k.mu.Lock()
	hook := k.hook
	k.mu.Unlock()
	if hook != nil {
		hook(at)
	}
}

// until lets time pass up to a moment after the acquire, and what falls due then happen.
func (k *kept) until(at time.Duration) {
	time.Sleep(at - time.Since(k.acquired))
	synctest.Wait()
}

// lostYet is the loss if it has been reported by now.
func (k *kept) lostYet() *Loss {
	k.Helper()
	select {
	case err := <-k.keeper.Lost():
		var loss *Loss
		if !errors.As(err, &loss) {
			k.Fatalf("the loss is %T: %v", err, err)
		}
		return loss
	default:
		return nil
	}
}

// lostBy lets time pass until the loss, which must come by that moment, and be of that cause. It returns when it came.
func (k *kept) lostBy(at time.Duration, cause string) time.Duration {
	k.Helper()
	select {
	case err := <-k.keeper.Lost():
		if code := codeIn(err); code != cause {
			k.Fatalf("the cause is %s (%v), want %s", code, err, cause)
		}
	case <-time.After(at - time.Since(k.acquired)):
		k.Fatalf("no loss %s after the acquire", at)
	}
	return time.Since(k.acquired)
}

// notLost fails if a loss was reported.
func (k *kept) notLost() {
	k.Helper()
	if loss := k.lostYet(); loss != nil {
		k.Fatalf("lost after %s: %s: %v", time.Since(k.acquired), loss.Cause, loss)
	}
}

// onlyLoss fails if another loss follows the one that was received, whatever happens next.
func (k *kept) onlyLoss() {
	k.Helper()
	time.Sleep(2 * k.keeper.Lease().term())
	k.keeper.Check()
	synctest.Wait()
	k.notLost()
}

// file is the lease in the file.
func (k *kept) file() *Lease {
	k.Helper()
	o, err := k.read()
	if err != nil || o.Lease == nil {
		k.Fatalf("there is no lease that can be read: %v", err)
	}
	return o.Lease
}

// edit puts a lease there as an editor would, without the protocol.
func (k *kept) edit(change func(l *Lease)) {
	k.Helper()
	l := k.file()
	change(l)
	k.put(l.Encode())
}

func (k *kept) put(content []byte) {
	k.Helper()
	if err := os.WriteFile(k.path, content, 0o644); err != nil {
		k.Fatal(err)
	}
}

func (k *kept) must(err error) {
	k.Helper()
	if err != nil {
		k.Fatal(err)
	}
}

// jam makes every mutation fail until it is lifted: the claim's name is taken by a directory. The lease can be read.
func (k *kept) jam() (lift func()) {
	k.Helper()
	k.must(os.Mkdir(k.path+".mutex", 0o755))
	return func() { k.must(os.Remove(k.path + ".mutex")) }
}
