package fence

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"holdfast/pkg/procid"
)

// specStep is one step that an owner may ask for, all of it said.
type specStep struct {
	from      specRow
	to        string
	storage   string // "none" where the step says none
	lease     string
	attempted bool
}

func (p specStep) String() string {
	return fmt.Sprintf("%s to %s, storage %s, lease %s, attempted %v", p.from, p.to, p.storage, p.lease, p.attempted)
}

// allowed is the specification's table of transitions. Schema 3 knows owners that take no lease: theirs stays never-held.
func (p specStep) allowed() bool {
	opened := p.from.state == "leased" || p.from.state == "storage-open"
	never := !p.attempted && p.from.state == "leased"
	switch p.from.state + " to " + p.to {
	case "fenced to leased":
		return p.lease == "held" || p.lease == "never-held" && p.from.schema == 3
	case "leased to storage-open":
		return p.lease == p.from.lease && p.attempted
	case "fenced to closed":
		return p.storage == "never-opened" && p.lease == "never-held" && !p.attempted
	}
	end := specRow{p.from.schema, p.to, p.lease, p.storage}
	switch {
	case !opened || !end.possible() || (p.lease == "never-held") != (p.from.lease == "never-held"):
		return false // what was held has an end; what never was is attributed to nobody
	case p.to == "closed":
		return p.storage == "closed" && p.from.state == "storage-open" || p.storage == "never-opened" && never
	case p.to == "close-failed":
		return p.storage != "never-opened" || never
	}
	return false
}

// standingAt is the standing of the owner whose claim it is.
func standingAt(c *Claim, attempted bool) standing {
	return standing{Claim: c, Ticket: Ticket{Resource: c.Resource, Generation: c.Generation, StorageOpenAttempted: attempted},
		Verdict: procid.Verdict{Word: procid.Live}}
}

func (p specStep) mark() Mark {
	m := Mark{To: State(p.to), Lease: Lease(p.lease)}
	if p.storage != "none" {
		m.Storage = Storage(p.storage)
	}
	return m
}

// stepsFrom are the steps between two states with every combination of what they may say. Only an end says what became of
// storage.
func stepsFrom(from specRow, to string) (steps []specStep) {
	storages := []string{"none"}
	if to == "closed" || to == "close-failed" {
		storages = specStorages[1:]
	}
	for _, storage := range storages {
		for _, lease := range specLeases {
			for _, attempted := range either {
				steps = append(steps, specStep{from, to, storage, lease, attempted})
			}
		}
	}
	return steps
}

// Every pair of states is a subtest: the lines of the table, and each pair that is none of them.
func TestEachPairOfStatesOfTheTransitionTable(t *testing.T) {
	lines := map[string]bool{
		"fenced to leased": true, "leased to storage-open": true, "fenced to closed": true, "leased to closed": true,
		"storage-open to closed": true, "leased to close-failed": true, "storage-open to close-failed": true,
	}
	for _, from := range specStates {
		for _, to := range specStates {
			pair := from + " to " + to
			t.Run(pair, func(t *testing.T) {
				allowed := 0
				for _, row := range possibleRows() {
					if row.state != from || row.schema == 1 {
						continue
					}
					c := carrying(t, row)
					for _, step := range stepsFrom(row, to) {
						if step.allowed() {
							allowed++
						}
						step.check(t, c)
					}
				}
				if (allowed > 0) != lines[pair] {
					t.Errorf("%d ways are allowed", allowed)
				}
			})
		}
	}
}

// carrying is the row's claim with all that its owner may carry on it.
func carrying(t *testing.T, r specRow) *Claim {
	o := r.claim().before("lease", "reclaimedFrom", jsReclaimed("storage-open", "held"))
	if r.state != "reserved" {
		o = o.before("lease", "adoptedFrom", jsAdopted())
	}
	return o.read(t)
}

func (p specStep) check(t *testing.T, c *Claim) {
	next, refusal := transit(p.mark(), standingAt(c, p.attempted), specWrite)
	if !p.allowed() {
		if next != nil && refusal == nil || refusal == nil || refusal.Code != "transition-invalid" {
			t.Errorf("%s: %+v, %v", p, next, refusal)
		}
		return
	}
	if refusal != nil {
		t.Errorf("%s: %v", p, refusal)
		return
	}
	want := &Claim{
		SchemaVersion: c.SchemaVersion, Resource: c.Resource, Selected: c.Selected, State: State(p.to), Owner: c.Owner,
		Generation: specWrite.Generation, FirstParticipation: c.FirstParticipation, AdoptedFrom: c.AdoptedFrom,
		Lease: Lease(p.lease), WrittenAt: specWrite.At,
	}
	if p.storage != "none" {
		want.End = &End{At: specWrite.At, Storage: Storage(p.storage), Lease: want.Lease}
	}
	if !reflect.DeepEqual(next, want) {
		t.Errorf("%s: writes\n%swant\n%s", p, next.Encode(), want.Encode())
	}
	if _, err := Decode(next.Encode()); err != nil {
		t.Errorf("%s: %v", p, err)
	}
}

// A mark that says no more than its state means the clean step, or, of a failed end, that nothing is known.
func TestWhatAMarkImplies(t *testing.T) {
	for _, c := range []struct {
		from      specRow
		to        State
		attempted bool
		lease     Lease
		storage   Storage
	}{
		{specRow{2, "fenced", "never-held", "none"}, Leased, false, Held, ""},
		{specRow{3, "fenced", "never-held", "none"}, Leased, false, Held, ""},
		{specRow{2, "leased", "held", "none"}, StorageOpen, true, Held, ""},
		{specRow{3, "leased", "never-held", "none"}, StorageOpen, true, NeverHeld, ""},
		{specRow{2, "fenced", "never-held", "none"}, Closed, false, NeverHeld, NeverOpened},
		{specRow{2, "leased", "held", "none"}, Closed, false, Released, NeverOpened},
		{specRow{3, "leased", "never-held", "none"}, Closed, false, NeverHeld, NeverOpened},
		{specRow{2, "storage-open", "held", "none"}, Closed, true, Released, StorageClosed},
		{specRow{3, "storage-open", "never-held", "none"}, Closed, true, NeverHeld, StorageClosed},
		{specRow{2, "leased", "held", "none"}, CloseFailed, false, Unknown, StorageUnknown},
		{specRow{2, "storage-open", "held", "none"}, CloseFailed, true, Unknown, StorageUnknown},
		{specRow{3, "storage-open", "never-held", "none"}, CloseFailed, true, NeverHeld, StorageUnknown},
	} {
		next, refusal := transit(Mark{To: c.to}, standingAt(c.from.claim().read(t), c.attempted), specWrite)
		switch {
		case refusal != nil:
			t.Errorf("%s to %s: %v", c.from, c.to, refusal)
		case next.Lease != c.lease || (next.End == nil) != (c.storage == "") || next.End != nil && next.End.Storage != c.storage:
			t.Errorf("%s to %s: %s", c.from, c.to, next.Encode())
		}
	}
	// After an attempt a leased owner has to say how storage ended.
	leased := specRow{2, "leased", "held", "none"}.claim().read(t)
	if _, refusal := transit(Mark{To: Closed}, standingAt(leased, true), specWrite); refusal == nil || refusal.Code != "transition-invalid" {
		t.Errorf("closed after an attempt: %v", refusal)
	}
}

func TestAnEndCarriesItsCauseCutAtACodePoint(t *testing.T) {
	open := specRow{2, "storage-open", "held", "none"}.claim().read(t)
	for cause, want := range map[string]string{
		"EIO":                                         "EIO",
		strings.Repeat("x", 600):                      strings.Repeat("x", 512),
		strings.Repeat("x", 511) + "\U0001f600":       strings.Repeat("x", 511),
		strings.Repeat("\U0001f600", 300):             strings.Repeat("\U0001f600", 256),
		strings.Repeat("x", 510) + "\U0001f600" + "x": strings.Repeat("x", 510) + "\U0001f600",
		"a\xffb": "a\ufffdb",
	} {
		c, refusal := transit(Mark{To: CloseFailed, Cause: cause, EnvCleanup: true}, standingAt(open, true), specWrite)
		if refusal != nil || string(*c.End.Cause) != want || c.End.EnvCleanup != "failed" {
			t.Errorf("%q: %+v, %v", cause, c, refusal)
			continue
		}
		if again, err := Decode(c.Encode()); err != nil || string(*again.End.Cause) != want {
			t.Errorf("%q: %v", cause, err)
		}
	}
	never := Mark{To: CloseFailed, Storage: NeverOpened, EnvCleanup: true}
	leased := specRow{2, "leased", "held", "none"}.claim().read(t)
	if _, refusal := transit(never, standingAt(leased, false), specWrite); refusal == nil || refusal.Code != "transition-invalid" {
		t.Errorf("an environment of what was never opened: %v", refusal)
	}
}
