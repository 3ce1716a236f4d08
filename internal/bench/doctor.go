package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"holdfast/pkg/fence"
)

// million is how many entries the large tree has.
const million = 1_000_000

// largeTree compares what is made for large trees with its peers, over one.
func largeTree() {
	dir := scratch("")
	defer os.RemoveAll(dir)
	plantTree(dir, million)
	scanTree(dir)
	classifyPaths(dir)
}

// scanTree compares scans with find, and with the least that any program does which asks for every entry's attributes.
func scanTree(dir string) {
	what := fmt.Sprintf("fsdoctor scan --only fifo, %d entries / find -type p", million)
	find, err := exec.LookPath("find")
	if err != nil {
		fmt.Printf("%-52s find is missing\n", what)
		return
	}
	types := []string{find, dir, "-type", "p"}
	ours, theirs := byTurns(7, nil, []string{"bin/fsdoctor", "scan", "--only", "fifo", dir}, types)
	row(what, ratioOf(ours, theirs), "<= 1", medians(ours, theirs))
	ours, theirs = byTurns(7, nil, []string{"bin/fsdoctor", "scan", dir}, types)
	row("  scan for every hazard / find -type p", ratioOf(ours, theirs), "<= 1", medians(ours, theirs)+"; find asks for no entry's attributes")
	self, err := os.Executable()
	must(err)
	least, theirs := byTurns(7, nil, []string{self, "attributes", dir, ""}, types)
	row("  attributes of every entry, no more / find -type p", ratioOf(least, theirs), "", medians(least, theirs)+"; two threads; a scan for every hazard cannot be faster")
	row("  scan for every hazard / attributes of every entry", ratioOf(ours, least), "", medians(ours, least))
	ours, theirs = byTurns(7, nil, []string{"bin/fsdoctor", "scan", dir}, []string{find, dir, "-perm", "/7002"})
	row("  scan for every hazard / find -perm /7002", ratioOf(ours, theirs), "<= 1", medians(ours, theirs))
	peak := peakMiB("scan", dir)
	row("peak memory of that scan, MiB", peak, "<= 100", "of the process that looks at files")
	few := scratch("")
	defer os.RemoveAll(few)
	plantTree(few, million/10)
	row("  that / of a scan of a tenth of the entries", peak/peakMiB("scan", few), "1", "")
}

func medians(a, b []time.Duration) string {
	return fmt.Sprintf("medians %s and %s", median(a), median(b))
}

// plantTree makes a tree of so many entries, a directory for each hundred files.
func plantTree(dir string, entries int) {
	for i := 0; i < entries; i++ {
		sub := filepath.Join(dir, fmt.Sprintf("group%d", i/10_100), fmt.Sprintf("dir%d", i/101))
		if i%101 == 0 {
			must(os.MkdirAll(sub, 0o755))
			continue
		}
		must(os.WriteFile(filepath.Join(sub, fmt.Sprintf("file%d", i)), nil, 0o644))
	}
}

// checkSessions compares a check of many session directories with find, which only prints what the claims hold.
func checkSessions() {
	const what, sessions = "fsdoctor check, 10000 sessions / find -exec cat", 10000
	find, err := exec.LookPath("find")
	if err != nil {
		fmt.Printf("%-52s find is missing\n", what)
		return
	}
	dir := scratch("")
	defer os.RemoveAll(dir)
	plant(dir, sessions)
	ours, theirs := byTurns(7, nil, []string{"bin/fsdoctor", "check", dir}, []string{find, dir, "-name", fence.ClaimName, "-exec", "cat", "{}", "+"})
	row(what, ratioOf(ours, theirs), "<= 5", medians(ours, theirs))
	row("peak memory of that check, MiB", peakMiB("check", dir), "<= 100", "of the process that looks at files")
}

// classifyPaths compares a classify of paths from a pipe with stat.
func classifyPaths(dir string) {
	const what = "rate of fsdoctor classify -0 / xargs -0 stat"
	xargs, err := exec.LookPath("xargs")
	if err != nil {
		fmt.Printf("%-52s xargs is missing\n", what)
		return
	}
	list, err := exec.Command("find", dir, "-print0").Output()
	must(err)
	ours, theirs := byTurns(3, list, []string{"bin/fsdoctor", "classify", "-0"}, []string{xargs, "-0", "stat", "--printf", `%n %F %s %a %u %g %h %y\n`})
	row(what, ratioOf(theirs, ours), ">= 0.5", fmt.Sprintf("%s for %d paths", medians(ours, theirs), bytes.Count(list, []byte{0})))
}

// byTurns times two commands one after the other, some rounds. Their output goes through a pipe, as in a script.
func byTurns(rounds int, input []byte, a, b []string) (as, bs []time.Duration) {
	for range rounds {
		as, bs = append(as, piped(input, a)), append(bs, piped(input, b))
	}
	return as, bs
}

func piped(input []byte, command []string) time.Duration {
	c := exec.Command(command[0], command[1:]...)
	c.Stdin = bytes.NewReader(input)
	c.Stdout = sink{}
	started := time.Now()
	err := c.Run()
	took := time.Since(started).Round(time.Microsecond)
	if _, exited := err.(*exec.ExitError); !exited { // a doctor that finds something ends with status 1
		must(err)
	}
	return took
}

// sink is not a file, so that what is written to it goes through a pipe.
type sink struct{}

func (sink) Write(b []byte) (int, error) { return len(b), nil }

// peakMiB is the most memory that a verb has needed, without the process in front that relays its output.
func peakMiB(args ...string) float64 {
	c := exec.Command("bin/fsdoctor", args...)
	c.Env = append(os.Environ(), "HOLDFAST_OFFLOADED=0:0,1:0,2:0")
	c.Stdout = sink{}
	_ = c.Run()
	return float64(c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) / 1024
}
