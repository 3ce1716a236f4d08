package claimview

import (
	"fmt"
	"time"

	"holdfast/internal/clikit"
	"holdfast/pkg/claim"
	"holdfast/pkg/regfile"
)

// lookEvery is how often a wait looks at whose claim it waits for. Most are held for less than that, and not worth a word.
const lookEvery = 300 * time.Millisecond

// Progress shows on a line, when that is a terminal's, whose claim is waited for. It may be told of a wait as often as one likes.
type Progress struct {
	Line *clikit.Line
	last int64
}

// Waiting says that a claim has been waited for so long already; inspect looks at it.
func (p *Progress) Waiting(inspect func() (claim.Inspection, error), waited time.Duration) {
	due := int64(waited / lookEvery)
	if p.Line == nil || due == 0 || due == p.last || !p.Line.Live() {
		return
	}
	p.last = due
	in, err := inspect()
	if err != nil || in.State == claim.Absent {
		return
	}
	by := "another program"
	if e := in.Evidence; e != nil {
		by = fmt.Sprintf("%s %s, pid %d on %s", regfile.Printable(e.Tool), regfile.Printable(e.Op), e.PID, regfile.Printable(e.Hostname))
	}
	p.Line.Show("waiting %s for %s, which %s has", waited.Round(100*time.Millisecond), regfile.Printable(in.Path), by)
}
