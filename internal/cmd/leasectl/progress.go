package leasectl

import (
	"time"

	"holdfast/internal/clikit"
	"holdfast/pkg/lease"
)

// progress shows on a terminal for whom is waited, and how long already.
type progress struct {
	line    *clikit.Line
	started time.Time
}

func newProgress() *progress { return &progress{line: clikit.ProgressLine(), started: time.Now()} }

func (p *progress) waiting(l *lease.Lease) {
	waited := left(time.Since(p.started))
	if l == nil {
		p.line.Show("waiting for the lease, %s", waited)
		return
	}
	until := time.Until(l.ExpiresAt)
	if until < 0 {
		p.line.Show("waiting for %s, %s; its lease expired %s ago", l.Who(), waited, left(-until))
		return
	}
	p.line.Show("waiting for %s, %s; its lease has %s left", l.Who(), waited, left(until))
}

func (p *progress) clear() { p.line.Clear() }
