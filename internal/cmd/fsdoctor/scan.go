package fsdoctor

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"holdfast/internal/clikit"
	"holdfast/pkg/doctor"
	"holdfast/pkg/regfile"
)

func probeFlag(into *time.Duration) cli.Flag {
	return clikit.DurationFlag("probe-timeout", "how `LONG` a filesystem may take to answer (default 2s)", into, 10*time.Millisecond, time.Hour)
}

func scanVerb() *clikit.Verb {
	jobs := min(max(runtime.GOMAXPROCS(0), 2), 16)
	o := doctor.ScanOptions{Huge: 1 << 30}
	var only string
	return &clikit.Verb{
		Name:  "scan",
		Usage: "find what hangs, misleads or blocks in a whole tree",
		Args:  "DIR…",
		Description: `One object for each hazard, as it is found, and a summary at the end. The code is the hazard: fifo, socket,
device, dangling, symlink-loop, symlink-escapes-root, setuid, world-writable, foreign-owner, unreadable, huge, sparse,
name-control-characters, name-not-utf8, case-collision, hard-linked, mount-point, or unresponsive. Only directories are opened.
The status is 1 when there is any hazard. What lies too deep for a path, of more than 4095 bytes, is told as unreadable.

--only tells no others than those named, and unreadable and unresponsive, behind which something may be. It is faster for what a
directory's list shows: fifo, socket, device, dangling, symlink-loop, symlink-escapes-root, the names and case-collision.

Example: every named pipe below a directory

   fsdoctor scan --only fifo . | jq -r 'select(.code == "fifo").path'`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "jobs", Usage: "look at `N` directories at once", Destination: &o.Jobs, Value: jobs, DefaultText: "the processors, from 2 to 16"},
			&cli.IntFlag{Name: "max-depth", Usage: "go at most `N` levels down", Destination: &o.MaxDepth, DefaultText: "no bound"},
			&cli.BoolFlag{Name: "one-file-system", Usage: "do not go into other filesystems", Destination: &o.OneFileSystem, DisableDefaultText: true},
			clikit.TextFlag("only", "`HAZARD,…` to tell", "all", &only),
			clikit.SizeFlag("huge", "the `SIZE` from which a file is huge", &o.Huge, 1<<50),
			probeFlag(&o.Patience),
		},
		Objects: []clikit.Object{&hazard{}, &scanSummary{}},
		Lists:   true,
		Run:     func(c *clikit.Call) error { return scan(c, o, words(only)) },
	}
}

// hazard is something in a tree that hangs, misleads or blocks.
type hazard struct {
	clikit.Head
	Condition string `json:"condition"`
	clikit.Location
	Detail string `json:"detail"`
}

// Text is the hazard, the path and the detail.
func (o *hazard) Text() string {
	return fmt.Sprintf("%-24s %s: %s", o.Condition, regfile.Printable(o.Path), o.Detail)
}

// scanSummary ends a scan.
type scanSummary struct {
	clikit.Head
	Entries     int64       `json:"entries"`
	Directories int64       `json:"directories"`
	Hazards     []condition `json:"hazards"`
	TookMs      int64       `json:"tookMs"`
	PerSecond   int64       `json:"perSecond"` // entries
}

// condition counts one kind of hazard.
type condition struct {
	Condition string `json:"condition"`
	Count     int64  `json:"count"`
}

// Text is the counts and the rate.
func (o *scanSummary) Text() string {
	text := fmt.Sprintf("%d entries in %d directories, %d a second: ", o.Entries, o.Directories, o.PerSecond)
	if len(o.Hazards) == 0 {
		return text + "no hazard"
	}
	words := make([]string, len(o.Hazards))
	for i, h := range o.Hazards {
		words[i] = fmt.Sprintf("%d %s", h.Count, h.Condition)
	}
	return text + strings.Join(words, ", ")
}

func scan(c *clikit.Call, o doctor.ScanOptions, only []string) error {
	if i := slices.IndexFunc(only, unknownHazard); i >= 0 {
		return clikit.Usagef("--only: no hazard is called %q; there are %s", only[i], strings.Join(doctor.Hazards(), ", "))
	}
	switch {
	case len(c.Args) == 0:
		return clikit.Usagef("a directory is missing; try 'fsdoctor scan --help'")
	case slices.Contains(c.Args, ""):
		return clikit.Usagef("an empty path names nothing")
	case o.Jobs < 1 || o.Jobs > 64:
		return clikit.Usagef("--jobs must be from 1 to 64")
	case o.MaxDepth < 0:
		return clikit.Usagef("--max-depth must not be negative")
	}
	o.Only = only
	// A thread that asks the kernel leaves its processor to the next one: with some to spare it need not wait to get one back.
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), o.Jobs+2))
	line := c.ProgressLine()
	defer line.Clear()
	total, err := doctor.Scan(c.Args, o, func(h doctor.Hazard) error {
		line.Clear()
		return c.Emit(&hazard{Head: clikit.Done(h.Condition), Condition: h.Condition, Location: clikit.At(h.Path), Detail: h.Detail})
	}, func(s doctor.Summary) {
		line.Show("%d entries in %d directories", s.Entries, s.Directories)
	})
	if err != nil {
		return err
	}
	line.Clear()
	if len(total.Hazards) > 0 {
		c.Exit(1)
	}
	return c.Emit(newSummary(total))
}

func unknownHazard(name string) bool { return !slices.Contains(doctor.Hazards(), name) }

func newSummary(total doctor.Summary) *scanSummary {
	o := &scanSummary{
		Head: clikit.Done("summary"), Entries: total.Entries, Directories: total.Directories, Hazards: []condition{},
		TookMs: total.Took.Milliseconds(), PerSecond: int64(float64(total.Entries) / max(total.Took.Seconds(), 1e-3)),
	}
	for name, n := range total.Hazards {
		o.Hazards = append(o.Hazards, condition{name, n})
	}
	slices.SortFunc(o.Hazards, func(a, b condition) int { return strings.Compare(a.Condition, b.Condition) })
	return o
}
