package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"holdfast/pkg/fence"
	"holdfast/pkg/procid"
)

// fencePairs compares admit+close pairs in one process with a raw loop of the same system calls.
func fencePairs(kind, parent string) {
	what := "admit+close pairs on " + kind + " / raw loop"
	if parent == "" {
		fmt.Printf("%-52s there is no %s here\n", what, kind)
		return
	}
	dir := scratch(parent)
	defer os.RemoveAll(dir)
	session, ticket := filepath.Join(dir, "session"), filepath.Join(dir, "ticket")
	must(os.Mkdir(session, 0o700))
	self, err := procid.Self()
	must(err)
	raw := newRawFence(filepath.Join(dir, "raw"))
	defer raw.close()
	opts := fence.Options{Self: func() (procid.Identity, error) { return self, nil }, Judge: procid.NewObserver().Judge}
	admitAndClose(session, ticket, self, opts)
	raw.pair()
	var ours, theirs []time.Duration
	for range 60 {
		ours = append(ours, loop(func() { admitAndClose(session, ticket, self, opts) }))
		theirs = append(theirs, loop(raw.pair))
	}
	row(what, ratioOf(theirs, ours), ">= 0.6", fmt.Sprintf("%s and %s a pair", median(ours), median(theirs)))
}

func admitAndClose(session, ticket string, owner procid.Identity, opts fence.Options) {
	f, err := fence.Open(session, false, opts)
	must(err)
	_, err = f.Admit(context.Background(), fence.Request{Owner: owner, Ticket: ticket})
	must(err)
	must(f.Close())
	_, err = fence.MarkTicket(context.Background(), ticket, fence.Mark{To: fence.Closed}, opts)
	must(err)
	must(os.Remove(ticket))
}

// showOne compares a whole process of fencectl show with flock's.
func showOne() {
	dir := scratch("")
	defer os.RemoveAll(dir)
	session := filepath.Join(dir, "session")
	must(os.Mkdir(session, 0o700))
	self, err := procid.Self()
	must(err)
	admitAndClose(session, filepath.Join(dir, "ticket"), self, fence.Options{})
	againstFlock("fencectl show / flock -n FILE true", "<= 1.6", dir, "bin/fencectl", "show", "--dir", session)
}

// showTree compares a listing of many session directories with find, which only prints what the claims hold.
func showTree() {
	const what, sessions = "fencectl show --tree, 10000 dirs / find -exec cat", 10000
	find, err := exec.LookPath("find")
	if err != nil {
		fmt.Printf("%-52s find is missing\n", what)
		return
	}
	dir := scratch("")
	defer os.RemoveAll(dir)
	plant(dir, sessions)
	var ours, theirs []time.Duration
	for range 7 {
		ours = append(ours, timed("bin/fencectl", "show", "--tree", dir))
		theirs = append(theirs, timed(find, dir, "-name", fence.ClaimName, "-exec", "cat", "{}", "+"))
	}
	row(what, ratioOf(ours, theirs), "<= 2", fmt.Sprintf("medians %s and %s", median(ours), median(theirs)))
}

// plant makes session directories with a claim each, a hundred to a directory, of owners with different pids.
func plant(dir string, sessions int) {
	self, err := procid.Self()
	must(err)
	session := filepath.Join(dir, "seed")
	must(os.Mkdir(session, 0o700))
	admitAndClose(session, filepath.Join(dir, "ticket"), self, fence.Options{})
	seed, err := os.ReadFile(filepath.Join(session, fence.ClaimName))
	must(err)
	must(os.RemoveAll(session))
	quoted, err := json.Marshal(session)
	must(err)
	for i := range sessions {
		path := filepath.Join(dir, fmt.Sprintf("group%d", i%100), fmt.Sprintf("session%d", i))
		must(os.MkdirAll(path, 0o700))
		claim := strings.ReplaceAll(string(seed), strings.Trim(string(quoted), `"`), path)
		claim = strings.Replace(claim, fmt.Sprintf(`"pid": %d`, self.PID), fmt.Sprintf(`"pid": %d`, 100000+i), 1)
		must(os.WriteFile(filepath.Join(path, fence.ClaimName), []byte(claim), 0o600))
	}
}
