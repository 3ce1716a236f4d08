package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"holdfast/pkg/lease"
	"holdfast/pkg/regfile"
)

// Contention is measured in rounds of one process alone and 8 together, each for so long.
const (
	contendRounds = 3
	contendFor    = 2 * time.Second
)

// report is what one contending process prints: its pairs, and how long those acquires took that were not granted at
// once, in nanoseconds.
type report struct {
	Pairs int
	Waits []time.Duration
}

// contention compares 8 processes that want one lease all the time with one alone.
func contention(parent string) {
	const what = "pairs of 8 contending processes / of one alone"
	if parent == "" {
		fmt.Printf("%-52s there is no tmpfs here\n", what)
		return
	}
	var alone, eight int
	var waits []time.Duration
	for range contendRounds {
		n, _ := together(parent, 1, "contend")
		alone += n
		n, w := together(parent, 8, "contend")
		eight += n
		waits = append(waits, w...)
	}
	row(what, float64(eight)/float64(alone), ">= 1",
		fmt.Sprintf("%d and %d pairs in %s", eight, alone, contendRounds*contendFor))
	if len(waits) == 0 {
		fmt.Println("nobody waited")
		return
	}
	mid, slowest := median(waits), slices.Max(waits)
	row("slowest wait / median of those that waited", float64(slowest)/float64(mid), "<= 10",
		fmt.Sprintf("%s and %s, %d waited", slowest.Round(time.Microsecond), mid.Round(time.Microsecond), len(waits)))
}

// together runs n processes of one kind for contendFor, from one moment on, over one lease.
func together(parent string, n int, kind string, args ...string) (pairs int, waits []time.Duration) {
	dir := scratch(parent)
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	must(err)
	start := time.Now().Add(300 * time.Millisecond).Format(time.RFC3339Nano)
	commands := make([]*exec.Cmd, n)
	for i := range commands {
		commands[i] = exec.Command(self, append([]string{kind, filepath.Join(dir, "x.lock"), start}, args...)...)
		commands[i].Stderr = os.Stderr
	}
	outputs := make(chan []byte, n)
	for _, c := range commands {
		go func() {
			out, err := c.Output()
			must(err)
			outputs <- out
		}()
	}
	for range commands {
		var r report
		must(json.Unmarshal(<-outputs, &r))
		pairs += r.Pairs
		waits = append(waits, r.Waits...)
	}
	return pairs, waits
}

// contend is one contending process: from start on it acquires and releases without a pause.
func contend(path, start string) {
	at, err := time.Parse(time.RFC3339Nano, start)
	must(err)
	store, err := lease.Open(path, lease.Options{})
	must(err)
	dir, err := regfile.OpenDir(filepath.Dir(path))
	must(err)
	time.Sleep(time.Until(at))
	var r report
	for end := at.Add(contendFor); time.Now().Before(end); r.Pairs++ {
		asked := time.Now()
		holder, waited := acquireWaiting(store, dir)
		if waited {
			r.Waits = append(r.Waits, time.Since(asked))
		}
		_, err := store.Release(context.Background(), holder)
		must(err)
	}
	r.print()
}

func (r report) print() { must(json.NewEncoder(os.Stdout).Encode(r)) }

// acquireWaiting asks until it gets the lease.
func acquireWaiting(store *lease.Store, dir *regfile.Dir) (holder string, waited bool) {
	asked := time.Now()
	for {
		out, err := store.Acquire(context.Background(), lease.AcquireRequest{})
		if err == nil {
			return out.Lease.HolderID, waited
		}
		var refusal *lease.Refusal
		if !errors.As(err, &refusal) || refusal.Code != lease.CodeHeld && refusal.Code != lease.CodeChanged {
			must(err)
		}
		waited = true
		// A claim beside the lease means that somebody is taking or releasing it; asking now would only be in the way.
		for busy := true; busy; {
			poll(time.Since(asked))
			_, err := dir.Lstat("x.lock.mutex")
			busy = err == nil
		}
	}
}

// poll sleeps for some 5 ms, less the longer the process has waited, as a considerate script would.
func poll(waited time.Duration) {
	const first, half = 5 * time.Millisecond, 400 * time.Millisecond
	d := first * half / (half + waited)
	time.Sleep(d/2 + rand.N(d))
}
