package claim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/internal/testkit"
	"holdfast/pkg/regfile"
)

// Nothing but the claim serializes the processes: an update would be lost if two were ever inside.
func TestProcessesExcludeEachOther(t *testing.T) {
	const processes, times = 10, 40
	dir := testkit.MemDir(t)
	check(t, os.WriteFile(filepath.Join(dir, "counter"), []byte("0"), 0o600))
	var all sync.WaitGroup
	for range processes {
		all.Go(func() { testkit.Play(t, testkit.Command("count", dir, fmt.Sprint(times))) })
	}
	all.Wait()
	b, err := os.ReadFile(filepath.Join(dir, "counter"))
	if err != nil || string(b) != fmt.Sprint(processes*times) {
		t.Errorf("the counter is %s, want %d, %v", b, processes*times, err)
	}
	if names, err := open(t, dir).Names(); err != nil || len(names) != 1 {
		t.Errorf("%q, %v", names, err)
	}
}

// crowd is a number of goroutines that enter, crash inside, inspect and clear, in random order. Each has the directory
// open for itself, as processes have.
type crowd struct {
	t      *testing.T
	dir    string
	inside atomic.Int32
	worst  atomic.Int32
	lost   atomic.Int32 // claims that were taken from somebody who was inside
	crash  float64      // how often a holder disappears without leaving
	done   chan struct{}
}

func (c *crowd) open() *regfile.Dir { return open(c.t, c.dir) }

// mutate enters as often as it is told. A holder says that it is a process that is gone: nothing but the kernel lock
// protects its claim.
func (c *crowd) mutate(times int) {
	d := c.open()
	for range times {
		who := me("mutate")
		who.Self = ghost()
		h, err := Enter(context.Background(), d, name, who, time.Minute)
		if err != nil {
			c.t.Error(err)
			return
		}
		n := c.inside.Add(1)
		for {
			worst := c.worst.Load()
			if n <= worst || c.worst.CompareAndSwap(worst, n) {
				break
			}
		}
		if rand.IntN(3) == 0 {
			time.Sleep(rand.N(300 * time.Microsecond))
		}
		if !h.Holds() {
			c.lost.Add(1)
		}
		c.inside.Add(-1)
		if rand.Float64() < c.crash {
			h.close()
		} else if err := h.Leave(); err != nil {
			c.t.Error(err)
		}
	}
}

// clear removes what it finds abandoned, and with force also what is empty: a creator that has not got the lock yet.
func (c *crowd) clear(force bool) {
	d := c.open()
	for {
		select {
		case <-c.done:
			return
		default:
		}
		in, err := Inspect(d, name)
		if err != nil {
			c.t.Error(err)
			return
		}
		req := ClearRequest{Token: in.Token}
		if force {
			req = ClearRequest{Digest: in.Fingerprint, Force: true}
		}
		if in.State == Abandoned || force && in.State == Unproven {
			_, err = Clear(d, name, req)
		}
		var refused *ClearError
		if err != nil && !errors.As(err, &refused) && !regfile.IsAbsent(err) {
			c.t.Error(err)
			return
		}
		time.Sleep(rand.N(200 * time.Microsecond))
	}
}

func (c *crowd) run(mutators, times int, force ...bool) {
	c.dir, c.done = testkit.MemDir(c.t), make(chan struct{})
	var mutating, clearing sync.WaitGroup
	for _, f := range force {
		clearing.Go(func() { c.clear(f) })
	}
	for range mutators {
		mutating.Go(func() { c.mutate(times) })
	}
	testkit.Within(c.t, 2*time.Minute, mutating.Wait)
	close(c.done)
	clearing.Wait()
	if c.worst.Load() != 1 || c.lost.Load() != 0 {
		c.t.Errorf("up to %d were inside at once, and %d lost their claim", c.worst.Load(), c.lost.Load())
	}
}

func TestGoroutinesExcludeEachOther(t *testing.T) {
	c := &crowd{t: t}
	c.run(8, 60)
	empty(t, c.open())
}

func TestClearingAbandonedClaimsLetsNobodyIn(t *testing.T) {
	c := &crowd{t: t, crash: 0.2}
	c.run(4, 60, false, false)
}

// Where the filesystem has kernel locks, force removes no claim that one of us is inside of.
func TestForcedClearingOfUnprovenClaimsLetsNobodyIn(t *testing.T) {
	c := &crowd{t: t, crash: 0.2}
	c.run(4, 60, true, false, true)
}

// A participant of another program creates the claim with a bare token, polls, and unlinks; it knows of no lock.
func TestAParticipantThatOnlyCreatesAndUnlinksIsServed(t *testing.T) {
	c := &crowd{t: t}
	c.dir, c.done = testkit.MemDir(t), make(chan struct{})
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { c.mutate(60) })
		all.Go(func() {
			for range 60 {
				if err := c.participate(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	testkit.Within(t, 2*time.Minute, all.Wait)
	if c.worst.Load() != 1 || c.lost.Load() != 0 {
		t.Errorf("up to %d were inside at once, and %d lost their claim", c.worst.Load(), c.lost.Load())
	}
	empty(t, c.open())
}

func (c *crowd) participate() error {
	path := filepath.Join(c.dir, name)
	for {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, os.ErrExist) {
			time.Sleep(rand.N(time.Millisecond))
			continue
		}
		if err != nil {
			return err
		}
		if n := c.inside.Add(1); n > 1 {
			c.worst.Store(n)
		}
		_, err = f.WriteString(strings.Repeat("a", 36))
		f.Close()
		c.inside.Add(-1)
		return errors.Join(err, os.Remove(path))
	}
}
