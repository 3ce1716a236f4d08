package leasectl

import (
	"fmt"
	"strings"
	"time"

	"holdfast/internal/clikit"
	"holdfast/pkg/lease"
	"holdfast/pkg/regfile"
)

// tenure is one holder's time, as the journal tells it.
type tenure struct {
	entry lease.Entry // of the acquire or takeover
	from  time.Time
	last  time.Time // the holder's last sign of life
	to    time.Time // when it was released or taken over; zero while it is the last one
	end   string
	void  bool
}

// tenures folds journal lines into tenures.
func tenures(records []lease.Record) []tenure {
	var all []tenure
	for _, r := range records {
		at, err := time.Parse(time.RFC3339, r.Entry.At)
		if err != nil {
			continue
		}
		switch {
		case r.Entry.Op == lease.OpAcquired || r.Entry.Op == lease.OpTakenOver:
			if n := len(all); n > 0 && all[n-1].to.IsZero() && !r.Void {
				all[n-1].to, all[n-1].end = at, "taken over"
				if r.Entry.Op == lease.OpAcquired {
					all[n-1].end = "gone"
				}
			}
			all = append(all, tenure{entry: r.Entry, from: at, last: at, void: r.Void})
		case r.Entry.Op == lease.OpCompacted:
		default:
			// Another implementation's holder shows here first when this program renews or releases its lease.
			if len(all) == 0 || all[len(all)-1].entry.HolderID != r.Entry.HolderID {
				all = append(all, tenure{entry: r.Entry, from: at})
			}
			t := &all[len(all)-1]
			t.last = at
			if r.Entry.Op == lease.OpReleased {
				t.to, t.end = at, "released"
			}
		}
	}
	if n := len(records); len(all) > 0 && records[n-1].Unconfirmed && all[len(all)-1].end == "" {
		all[len(all)-1].end = "not confirmed by the lease file"
	}
	return all
}

// timeline is the history as text: one row for each tenure, a bar on a common scale.
type timeline struct {
	clikit.Head
	tenures []tenure
	width   int
	now     time.Time
}

const (
	shortestBar = 10
	timeColumn  = "2006-01-02 15:04:05"
)

// Text draws the rows. A bar is solid as far as the holder gave signs of life, and light until its lease was ended.
func (t *timeline) Text() string {
	if len(t.tenures) == 0 {
		return ""
	}
	start, end := t.tenures[0].from, t.now
	if last := t.tenures[len(t.tenures)-1]; !last.to.IsZero() {
		end = last.to
	}
	bar := max((t.width-len(timeColumn))/3, shortestBar)
	scale := func(at time.Time) int {
		if span := end.Sub(start); span > 0 {
			return min(max(int(float64(bar)*float64(at.Sub(start))/float64(span)), 0), bar)
		}
		return 0
	}
	rows := make([]string, len(t.tenures))
	for i, x := range t.tenures {
		to := x.to
		if to.IsZero() {
			to = end
		}
		rows[i] = clikit.Cut(fmt.Sprintf("%s  %s  %s", x.from.UTC().Format(timeColumn),
			drawBar(bar, scale(x.from), scale(x.last), scale(to)), x.describe(to)), t.width)
	}
	return strings.Join(rows, "\n")
}

// drawBar fills from..last solid and last..to light; a tenure too short for the scale still shows.
func drawBar(width, from, last, to int) string {
	cells := []rune(strings.Repeat("·", width))
	for i := from; i < to && i < width; i++ {
		cells[i] = '░'
		if i < last {
			cells[i] = '█'
		}
	}
	cells[min(from, width-1)] = '█'
	return string(cells)
}

func (x tenure) describe(to time.Time) string {
	who := x.entry.Label
	if who == "" {
		who = x.entry.HolderID
	}
	text := fmt.Sprintf("fence %d  %s", x.entry.Fence, left(to.Sub(x.from)))
	if x.end != "" {
		text += ", " + x.end
	}
	if x.void {
		text += ", void"
	}
	return text + "  " + regfile.Printable(who)
}
