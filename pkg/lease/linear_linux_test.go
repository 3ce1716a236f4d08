package lease

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// Processes acquire, take over, renew, release and look, are stopped and killed at any moment, and what they leave is
// cleared. What all of them were told is as if every operation had happened at one moment, and no fence token of the
// journal is ever followed by one that is not higher, across many compactions.
func TestProcessesThatAreKilledAndStoppedAreLinearizable(t *testing.T) {
	c := newChaos(t, 1, job{Bound: 50 * time.Millisecond, Compact: 24 << 10, Longest: 40 * time.Millisecond})
	c.run(5, 6*time.Second, "killed", "stopped", "cleared abandoned", "cleared unproven", "compacted")
	history := append(c.history(), c.atLast())
	t.Logf("%d operations, %v: %v", len(history), c.counts, tally(history))
	checkLinearizable(t, history)
	checkForged(t, history)
	c.checkJournal(history)
	c.clock.add(time.Hour)
	out, err := c.operator.Acquire(context.Background(), AcquireRequest{TakeOver: true})
	succeeded(t, out, err)
	c.tidy()
}

// checkForged falsifies what was recorded, and fails unless the checker notices.
func checkForged(t *testing.T, history []*operation) {
	t.Helper()
	wins := slices.DeleteFunc(slices.Clone(history), func(o *operation) bool {
		return !o.Answered || o.Code != "" || o.Verb != "take-over" && o.Verb != "acquire"
	})
	slices.SortFunc(wins, func(a, b *operation) int { return cmp.Compare(a.Call, b.Call) })
	forge := func(name string, change func(one, next *operation) []*operation) {
		at := len(wins) / 2
		one, next := *wins[at], *wins[at+1]
		forged := slices.DeleteFunc(slices.Clone(history), func(o *operation) bool { return o == wins[at] || o == wins[at+1] })
		result, _ := linearizable(append(forged, change(&one, &next)...), time.Minute)
		if result != porcupine.Illegal {
			t.Errorf("%s: the verdict is %s", name, result)
		}
	}
	forge("two results swapped", func(one, next *operation) []*operation {
		one.Lease, next.Lease, one.Replaced, next.Replaced = next.Lease, one.Lease, next.Replaced, one.Replaced
		return []*operation{one, next}
	})
	forge("a win that another was told as well", func(one, next *operation) []*operation {
		twin, lease := *one, *one.Lease
		lease.Holder, lease.Token = "twin", "twin"
		twin.Holder, twin.Token, twin.Lease = "twin", "twin", &lease
		return []*operation{one, &twin, next}
	})
	forge("a win that nobody was told of", func(_, next *operation) []*operation { return []*operation{next} })
	forge("a fence token that is one too low", func(one, next *operation) []*operation {
		lease := *next.Lease
		lease.Fence = one.Lease.Fence
		next.Lease = &lease
		return []*operation{one, next}
	})
}

func tally(history []*operation) map[string]int {
	all := map[string]int{}
	for _, o := range history {
		code := o.Code
		switch {
		case !o.Answered:
			code = "died"
		case code == "":
			code = "done"
		}
		all[o.Verb+" "+code]++
	}
	return all
}

func checkLinearizable(t *testing.T, history []*operation) {
	t.Helper()
	result, info := linearizable(history, 2*time.Minute)
	if result == porcupine.Ok {
		return
	}
	file := filepath.Join(t.ArtifactDir(), "history.html")
	if err := porcupine.VisualizePath(register.ToModel(), info, file); err != nil {
		t.Error(err)
	}
	t.Errorf("the history is not linearizable (%s); see %s", result, file)
}

// checkJournal fails unless the numbers of the journal strictly increase, and no two leases ever had the same.
func (c *chaos) checkJournal(history []*operation) {
	c.Helper()
	grow(c.T, fences(c.entries))
	tokens := map[uint64]string{}
	given := func(fence uint64, token string) {
		if other, twice := tokens[fence]; twice && other != token {
			c.Errorf("the fence token %d of %s is that of %s, too", fence, token, other)
		}
		tokens[fence] = token
	}
	for _, e := range c.entries {
		if e.Op == OpAcquired || e.Op == OpTakenOver {
			given(e.Fence, e.Token)
		}
	}
	for _, o := range history {
		if o.Answered && o.Code == "" && (o.Verb == "acquire" || o.Verb == "take-over") && o.Lease.Fence > 0 {
			given(o.Lease.Fence, o.Token)
		}
	}
	if len(tokens) == 0 {
		c.Error("there were no fence tokens")
	}
	h, err := c.operator.History()
	if err != nil {
		c.Fatal(err)
	}
	for _, rec := range h.Records {
		if rec.Void {
			c.Errorf("a void line: %+v", rec.Entry)
		}
	}
}
