package lease

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

// order tells a contender process what to contend for.
type order struct {
	Path     string
	TakeOver bool
	Entrants int   // goroutines, each with a Store of its own
	Start    int64 // when, on CLOCK_MONOTONIC in ns
}

// result is how one entrant fared.
type result struct {
	Code  string // "" is success
	File  string // what it published
	Fence uint64
}

func monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

// contender is a process that carries out orders from its standard input, and prints the results of each in one line.
func contender([]string) error {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var o order
		if err := in.Decode(&o); err != nil {
			return nil // the test is over
		}
		results := make([]result, o.Entrants)
		var all sync.WaitGroup
		for i := range results {
			all.Go(func() { results[i] = o.enter() })
		}
		all.Wait()
		if err := out.Encode(results); err != nil {
			return err
		}
	}
}

func (o order) enter() result {
	s, err := Open(o.Path, Options{})
	if err != nil {
		return result{Code: err.Error()}
	}
	defer s.Close()
	s.iv.claimBound = time.Minute // the machine may be slow; a timeout is not the point here
	time.Sleep(time.Duration(o.Start - monotonic()))
	out, err := s.Acquire(context.Background(), AcquireRequest{TakeOver: o.TakeOver})
	if err != nil {
		return result{Code: errCode(err)}
	}
	return result{File: string(out.Lease.Encode()), Fence: out.Lease.Fence}
}

// contest is some contender processes.
type contest struct {
	in  []*json.Encoder
	out []*json.Decoder
}

func newContest(t *testing.T, processes int) *contest {
	c := &contest{}
	for range processes {
		cmd := testkit.Command("contender")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			in.Close()
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		c.in, c.out = append(c.in, json.NewEncoder(in)), append(c.out, json.NewDecoder(out))
	}
	return c
}

// round has all entrants begin at one moment, and returns how they fared.
func (c *contest) round(t *testing.T, o order) (all []result) {
	t.Helper()
	o.Start = monotonic() + (3 * time.Millisecond).Nanoseconds()
	for _, in := range c.in {
		if err := in.Encode(o); err != nil {
			t.Fatal(err)
		}
	}
	for _, out := range c.out {
		var some []result
		if err := out.Decode(&some); err != nil {
			t.Fatal(err)
		}
		all = append(all, some...)
	}
	return all
}

// oneWinner fails unless exactly one entrant succeeded, with the next fence token, all others say that it is held or has
// changed, the file holds the winner's bytes, one number was taken, and nothing else is left.
//
// It returns how many came so close that they found the lease changed.
func (r *rig) oneWinner(all []result, before uint64) (met int) {
	r.Helper()
	var winners []result
	for _, one := range all {
		switch one.Code {
		case "":
			winners = append(winners, one)
		case CodeChanged:
			met++
		case CodeHeld:
		default:
			r.Errorf("a loser says %s", one.Code)
		}
	}
	if len(winners) != 1 {
		r.Fatalf("%d winners of %d: %+v", len(winners), len(all), winners)
	}
	equal(r.T, "the file", r.bytes(""), winners[0].File)
	equal(r.T, "the fence token", winners[0].Fence, before+1)
	equal(r.T, "the journal's lines", len(r.entries()), 1)
	r.tidy()
	if r.Failed() {
		r.FailNow()
	}
	return met
}

// fresh makes the next round's directory.
func (r *rig) fresh(round int) {
	r.Helper()
	if err := os.RemoveAll(r.dir); err != nil {
		r.Fatal(err)
	}
	r.dir = filepath.Join(filepath.Dir(r.dir), fmt.Sprint("round", round))
	if err := os.Mkdir(r.dir, 0o755); err != nil {
		r.Fatal(err)
	}
	r.path = filepath.Join(r.dir, "orchestrator.lock")
}

const rounds = 200

// case B24 (a): while ten processes acquire at once, over and over, whoever reads sees no file or a whole one.
func TestTenProcessesAcquireAtOnce(t *testing.T) {
	r := newRig(t)
	c := newContest(t, 10)
	var reading atomic.Pointer[string]
	look := readers(t, &reading)
	met := 0
	for round := range rounds {
		r.fresh(round)
		path := r.path
		reading.Store(&path)
		met += r.oneWinner(c.round(t, order{Path: r.path, Entrants: 1}), 0)
	}
	contended(t, met)
	if whole := look(); whole < rounds/10 {
		t.Errorf("the readers saw a lease only %d times", whole)
	}
}

// readers look at the lease all the time, as a program of another make and through Status, until the returned function
// is called; it says how often they saw one.
func readers(t *testing.T, path *atomic.Pointer[string]) (stop func() int64) {
	var over atomic.Bool
	var whole atomic.Int64
	var all sync.WaitGroup
	looking := func(look func(path string) (bool, error)) {
		all.Go(func() {
			for !over.Load() {
				p := path.Load()
				if p == nil {
					continue
				}
				lease, err := look(*p)
				if err != nil {
					t.Errorf("a reader: %v", err)
					return
				}
				if lease {
					whole.Add(1)
				}
				time.Sleep(20 * time.Microsecond)
			}
		})
	}
	looking(func(path string) (bool, error) {
		content, err := os.ReadFile(path)
		if err != nil {
			return false, nil // none yet, or the round is over
		}
		_, err = Parse(content)
		return true, err
	})
	looking(func(path string) (bool, error) {
		s, err := Open(path, Options{AllowMissing: true})
		if err != nil {
			return false, err
		}
		defer s.Close()
		st, err := s.Status()
		return st.State != StateFree, err
	})
	t.Cleanup(func() { over.Store(true); all.Wait() })
	return func() int64 {
		over.Store(true)
		all.Wait()
		return whole.Load()
	}
}

// case B21: fifty contenders take over one expired lease at a barrier. Exactly one does, the fence token grows by one,
// and nothing is left behind.
func TestFiftyTakeOversOfOneExpiredLease(t *testing.T) {
	r := newRig(t)
	c := newContest(t, 5)
	met := 0
	for round := range rounds {
		r.fresh(round)
		r.plant(planted("gone", time.Now().Add(-time.Minute)).Encode())
		met += r.oneWinner(c.round(t, order{Path: r.path, TakeOver: true, Entrants: 10}), 7)
	}
	contended(t, met)
}

// contended fails when the entrants did not really meet.
func contended(t *testing.T, met int) {
	t.Helper()
	t.Logf("%d losers had decided on the same state as the winner, in %d rounds", met, rounds)
	if met < rounds/10 {
		t.Error("the entrants hardly met")
	}
}
