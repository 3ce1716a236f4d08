package fencectl

import (
	"fmt"
	"strings"
	"time"

	"holdfast/internal/clikit"
	"holdfast/pkg/fence"
	"holdfast/pkg/regfile"
)

func leaseVerb(s *session) *clikit.Verb {
	return &clikit.Verb{
		Name:  "lease",
		Usage: "remove a native lease that a dead program left behind",
		Description: `The native lease is DIR.lock beside a session directory, made by the programs that open it. The fence
never removes one by itself.`,
		Verbs: []*clikit.Verb{leaseClearVerb(s)},
	}
}

type leaseClearOptions struct {
	target
	mtime  string
	minAge time.Duration
}

func leaseClearVerb(s *session) *clikit.Verb {
	o := leaseClearOptions{minAge: fence.DefaultMinAge}
	return &clikit.Verb{
		Name:  "clear",
		Usage: "remove the native lease that has exactly this mtime",
		Description: `Only an empty directory is removed, only with exactly the mtime that 'fencectl show' printed, at least
--min-age old, and only when the directory has no owner that may live. A program that still has the lease touches it
every few seconds, so that it is never old.

Example: the command that the refusal prints

   fencectl lease clear --dir sessions/s1 --mtime 2026-11-30T09:20:00.123Z`,
		Flags: append(o.flags(),
			clikit.TextFlag("mtime", "the lease's `TIME`, as show gives it", "none", &o.mtime),
			clikit.DurationFlag("min-age", "how `LONG` it must have been untouched (default 1m)", &o.minAge, 0, 365*24*time.Hour),
		),
		Objects: []clikit.Object{&leaseCleared{}},
		Mutates: true,
		Run:     func(c *clikit.Call) error { return s.clearLease(c, o) },
	}
}

// leaseCleared is a native lease that was removed.
type leaseCleared struct {
	clikit.Head
	Resource string   `json:"resource"`
	Removed  []string `json:"removed"`
}

// Text says what was removed.
func (o *leaseCleared) Text() string {
	return fmt.Sprintf("%s: removed %s", regfile.Printable(o.Resource), regfile.Printable(strings.Join(o.Removed, " and ")))
}

func (s *session) clearLease(c *clikit.Call, o leaseClearOptions) error {
	if o.mtime == "" {
		return clikit.Usagef("which lease? give --mtime; 'fencectl show' prints it")
	}
	mtime, err := time.Parse(time.RFC3339Nano, o.mtime)
	if err != nil {
		return clikit.Usagef("--mtime %q is no RFC 3339 time", o.mtime)
	}
	f, err := s.open(o.target, false)
	if err != nil {
		return err
	}
	defer f.Close()
	removed, err := f.ClearLease(c.Context, fence.LeaseClear{Mtime: mtime, MinAge: o.minAge})
	if err != nil {
		return err
	}
	return c.Emit(&leaseCleared{Head: clikit.Done("cleared"), Resource: f.Resource(), Removed: removed})
}
