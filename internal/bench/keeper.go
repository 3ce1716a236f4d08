package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/pkg/lease"
)

// runTrue compares a whole run of the wrapper around true with flock's.
func runTrue(kind, parent string) {
	what := "leasectl run -- true / flock FILE true, on " + kind
	flock, err := exec.LookPath("flock")
	if err != nil || parent == "" {
		fmt.Printf("%-52s flock or a %s is missing\n", what, kind)
		return
	}
	dir := scratch(parent)
	defer os.RemoveAll(dir)
	file, plain := filepath.Join(dir, "f.lock"), filepath.Join(dir, "plain")
	var ours, theirs []time.Duration
	for i := range 120 {
		a := timed("bin/leasectl", "run", "--lock", file, "--", "true")
		b := timed(flock, plain, "true")
		if i >= 20 {
			ours, theirs = append(ours, a), append(theirs, b)
		}
	}
	row(what, ratioOf(ours, theirs), "<= 3", fmt.Sprintf("medians %s and %s", median(ours), median(theirs)))
}

// idleKeeper looks at a keeper that has nothing to do: its memory, and how often it wakes.
func idleKeeper() {
	dir := scratch("")
	defer os.RemoveAll(dir)
	keeper := exec.Command("bin/leasectl", "run", "--lock", filepath.Join(dir, "f.lock"), "--", "sleep", "60")
	must(keeper.Start())
	defer func() {
		_ = keeper.Process.Signal(unix.SIGTERM)
		_ = keeper.Wait()
	}()
	time.Sleep(2 * time.Second)
	const span = 5
	before := wakeUps(keeper.Process.Pid)
	time.Sleep(span * time.Second)
	woken := wakeUps(keeper.Process.Pid) - before
	row("memory of an idle keeper, MiB", float64(residentKiB(keeper.Process.Pid))/1024, "<= 12", "resident")
	// A tick wakes the watchdog, and the watchdog the renewer.
	row("wake-ups of an idle keeper a second, all threads", float64(woken)/span, "few", "its tick is a second")
}

func residentKiB(pid int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(err)
	return statusField(string(b), "VmRSS:")
}

// wakeUps counts how often the process's threads have given up a processor of their own accord.
func wakeUps(pid int) (n int) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	must(err)
	for _, task := range tasks {
		if b, err := os.ReadFile(task); err == nil {
			n += statusField(string(b), "voluntary_ctxt_switches:")
		}
	}
	return n
}

func statusField(status, name string) int {
	for line := range strings.Lines(status) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			n, err := strconv.Atoi(strings.Fields(rest)[0])
			must(err)
			return n
		}
	}
	return 0
}

const (
	holdFor  = 2 * time.Millisecond
	thinkFor = 10 * time.Millisecond
)

// utilisation compares how much of the time a lease is held, by 8 that hold it for 2 ms and think for 10, with one that
// takes it again at once; flock(2) serves as the peer.
func utilisation(parent string) {
	const what = "utilisation of 8 keepers / of one alone"
	if parent == "" {
		fmt.Printf("%-52s there is no tmpfs here\n", what)
		return
	}
	for _, kind := range []string{"lease", "flock"} {
		alone, _ := together(parent, 1, "use-"+kind, "0")
		eight, _ := together(parent, 8, "use-"+kind, thinkFor.String())
		share := func(n int) float64 { return float64(n) * holdFor.Seconds() / contendFor.Seconds() }
		name, target := what, ">= 0.9"
		if kind == "flock" {
			name, target = "  the same with flock(2)", "peer"
		}
		row(name, float64(eight)/float64(alone), target, fmt.Sprintf("held %.2f and %.2f of the time", share(eight), share(alone)))
	}
}

// use is one process of utilisation: it takes, holds, gives back and thinks.
func use(kind, path, start, think string) {
	at, err := time.Parse(time.RFC3339Nano, start)
	must(err)
	pause, err := time.ParseDuration(think)
	must(err)
	take := leases(path)
	if kind == "flock" {
		take = flocks(path)
	}
	time.Sleep(time.Until(at))
	var r report
	for end := at.Add(contendFor); time.Now().Before(end); r.Pairs++ {
		give := take()
		time.Sleep(holdFor)
		give()
		time.Sleep(pause)
	}
	r.print()
}

// leases and flocks make a function that takes, and returns how to give back.
func leases(path string) (take func() (give func())) {
	store, err := lease.Open(path, lease.Options{})
	must(err)
	return func() func() {
		out, err := store.AcquireWaiting(context.Background(), lease.AcquireRequest{}, time.Minute, nil)
		must(err)
		return func() {
			_, err := store.Release(context.Background(), out.Lease.HolderID)
			must(err)
		}
	}
}

func flocks(path string) (take func() (give func())) {
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	must(err)
	lock := func(how int) {
		err := unix.EINTR
		for err == unix.EINTR {
			err, _ = unix.Flock(fd, how).(unix.Errno)
		}
		if err != 0 {
			must(err)
		}
	}
	return func() func() {
		lock(unix.LOCK_EX)
		return func() { lock(unix.LOCK_UN) }
	}
}
