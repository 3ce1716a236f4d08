package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"holdfast/pkg/lease"
)

// pairs compares acquire+release pairs in one process with a raw loop of the same system calls.
func pairs(kind, parent string) {
	what := "acquire+release pairs on " + kind + " / raw loop"
	if parent == "" {
		fmt.Printf("%-52s there is no %s here\n", what, kind)
		return
	}
	dir := scratch(parent)
	defer os.RemoveAll(dir)
	store, err := lease.Open(filepath.Join(dir, "x.lock"), lease.Options{})
	must(err)
	defer store.Close()
	raw := newRaw(filepath.Join(dir, "raw"))
	defer raw.close()
	pair(store)
	var ours, theirs []time.Duration
	for range 60 {
		ours = append(ours, loop(func() { pair(store) }))
		theirs = append(theirs, loop(raw.pair))
	}
	row(what, ratioOf(theirs, ours), ">= 0.6", fmt.Sprintf("%s and %s a pair", median(ours), median(theirs)))
}

// loop is the time of one round among a few.
func loop(f func()) time.Duration {
	const rounds = 50
	started := time.Now()
	for range rounds {
		f()
	}
	return time.Since(started) / rounds
}

func pair(store *lease.Store) {
	out, err := store.Acquire(context.Background(), lease.AcquireRequest{})
	must(err)
	_, err = store.Release(context.Background(), out.Lease.HolderID)
	must(err)
}

func acquireOnce(path string) {
	store, err := lease.Open(path, lease.Options{})
	must(err)
	defer store.Close()
	_, err = store.Acquire(context.Background(), lease.AcquireRequest{})
	must(err)
}
