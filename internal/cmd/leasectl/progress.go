package leasectl

import (
	"fmt"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"holdfast/internal/clikit"
	"holdfast/pkg/claim"
	"holdfast/pkg/lease"
	"holdfast/pkg/regfile"
)

// progress shows on a terminal for whom is waited, and how long already.
type progress struct {
	line    *clikit.Line
	started time.Time
	looks   atomic.Int64 // at the claim that is waited for now
	muted   atomic.Bool
}

func newProgress(c *clikit.Call) *progress {
	return &progress{line: c.ProgressLine(), started: time.Now()}
}

func (p *progress) waiting(l *lease.Lease) {
	waited := left(time.Since(p.started))
	if l == nil {
		p.line.Show("waiting %s for the lease", waited)
		return
	}
	p.line.Show("%s", fit(p.line.Room(), "waiting "+waited+" for ", callName(l), onHost(" on ", l)+", "+timing(l, time.Now())))
}

// timing is how long the lease lasts, or has been over.
func timing(l *lease.Lease, now time.Time) string {
	if l.Expired(now) {
		return "expired " + left(now.Sub(l.ExpiresAt)) + " ago"
	}
	return left(l.ExpiresAt.Sub(now)) + " left"
}

// callName is what people call a holder: its label, or the beginning of its id.
func callName(l *lease.Lease) string {
	if l.Label != "" {
		return regfile.Printable(l.Label)
	}
	return shortID(l)
}

func shortID(l *lease.Lease) string { return clikit.Cut(regfile.Printable(l.HolderID), 9) }

func onHost(word string, l *lease.Lease) string {
	if l.Hostname == "" {
		return ""
	}
	return word + regfile.Printable(l.Hostname)
}

// leastName is what is shown of a name, however little room there is.
const leastName = 6

// fit is a line in which the name gives way, so that what is around it is seen.
func fit(room int, before, name, after string) string {
	around := utf8.RuneCountInString(before) + utf8.RuneCountInString(after)
	return before + clikit.Cut(name, max(room-around, leastName)) + after
}

// A claim is mostly held for less than a moment: what takes no longer is not worth a word, and the next look no sooner.
const claimLook = 300 * time.Millisecond

// entering shows whose claim is waited for. It is told of every look at the claim, hundreds in a second.
func (p *progress) entering(e lease.Entering) {
	due := int64(e.Waited / claimLook)
	if due == 0 {
		p.looks.Store(0)
		return
	}
	if p.muted.Load() || !p.line.Live() || p.looks.Swap(due) == due {
		return
	}
	if in, err := e.Inspect(); err == nil && in.State != claim.Absent {
		p.line.Show("waiting for the claim, %s: %s", left(e.Waited), claimant(in))
	}
}

func claimant(in claim.Inspection) string {
	if e := in.Evidence; e != nil {
		return fmt.Sprintf("%s %s has it, pid %d on %s", regfile.Printable(e.Tool), regfile.Printable(e.Op), e.PID, regfile.Printable(e.Hostname))
	}
	return "another program has it, " + regfile.Printable(in.Path)
}

func (p *progress) clear() { p.line.Clear() }

// mute leaves the terminal to others.
func (p *progress) mute() {
	p.muted.Store(true)
	p.clear()
}

func (p *progress) unmute() { p.muted.Store(false) }
