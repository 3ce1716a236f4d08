// Command bench prints how the programs compare with peers measured in the same run, as ratios with their targets.
//
// It judges nothing: the machine may be busy. A peer that is missing is said, not made up.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	if len(os.Args) > 3 {
		worker(os.Args[1], os.Args[2], os.Args[3], os.Args[4:])
		return
	}
	wholeProcess()
	runTrue("tmpfs", tmpfsDir())
	runTrue("disk", diskDir())
	idleKeeper()
	pairs("tmpfs", tmpfsDir())
	pairs("disk", diskDir())
	contention(tmpfsDir())
	utilisation(tmpfsDir())
	showOne()
	showTree()
	fencePairs("tmpfs", tmpfsDir())
	inspectRoot()
	listFull(tmpfsDir())
	acquireGrowth(tmpfsDir())
	largeTree()
	checkSessions()
}

// worker is this program as one of the processes it measures.
func worker(kind, path, start string, args []string) {
	switch kind {
	case "contend":
		contend(path, start)
	case "use-lease", "use-flock":
		use(strings.TrimPrefix(kind, "use-"), path, start, args[0])
	case "attributes":
		attributes(path)
	}
}

// row prints one comparison.
func row(what string, ratio float64, target, detail string) {
	fmt.Printf("%-52s %6.2f   target %-8s %s\n", what, ratio, target, detail)
}

// wholeProcess compares the start, work and end of one command with flock's.
func wholeProcess() {
	dir := scratch("")
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "f.lock")
	acquireOnce(file)
	againstFlock("leasectl status / flock -n FILE true", "<= 1.6", dir, "bin/leasectl", "status", "--lock", file)
}

// againstFlock times a whole process against flock's on a file in dir.
func againstFlock(what, target, dir, name string, args ...string) {
	flock, err := exec.LookPath("flock")
	if err != nil {
		fmt.Printf("%-52s flock is missing\n", what)
		return
	}
	plain := filepath.Join(dir, "plain")
	must(os.WriteFile(plain, nil, 0o600))
	var ours, theirs []time.Duration
	for i := range 220 {
		a := timed(name, args...)
		b := timed(flock, "-n", plain, "true")
		if i >= 20 { // the first ones warm the caches
			ours, theirs = append(ours, a), append(theirs, b)
		}
	}
	row(what, ratioOf(ours, theirs), target, fmt.Sprintf("medians %s and %s", median(ours), median(theirs)))
}

func timed(name string, args ...string) time.Duration {
	started := time.Now()
	must(exec.Command(name, args...).Run())
	return time.Since(started).Round(time.Microsecond)
}

// ratioOf is the ratio of medians.
func ratioOf(a, b []time.Duration) float64 { return float64(median(a)) / float64(median(b)) }

func median(d []time.Duration) time.Duration {
	if len(d) == 0 {
		return 0
	}
	d = slices.Clone(d)
	slices.Sort(d)
	return d[len(d)/2]
}

// tmpfsDir is a directory to make scratch directories in on a tmpfs; empty when there is none.
func tmpfsDir() string {
	for _, dir := range []string{"/dev/shm", os.Getenv("XDG_RUNTIME_DIR"), os.TempDir()} {
		if isTmpfs(dir) {
			return dir
		}
	}
	return ""
}

// diskDir is likewise one that is not on a tmpfs.
func diskDir() string {
	for _, dir := range []string{os.TempDir(), "."} {
		if !isTmpfs(dir) {
			return dir
		}
	}
	return ""
}

func isTmpfs(dir string) bool {
	var st unix.Statfs_t
	return dir != "" && unix.Statfs(dir, &st) == nil && uint32(st.Type) == unix.TMPFS_MAGIC
}

func scratch(parent string) string {
	dir, err := os.MkdirTemp(parent, "holdfast-bench-")
	must(err)
	return dir
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
