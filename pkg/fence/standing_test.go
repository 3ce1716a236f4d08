package fence

import (
	"bytes"
	"testing"

	"holdfast/pkg/procid"
)

// ticketed is a standing with the ticket given.
func ticketed(c *Claim, t Ticket, word procid.Word) standing {
	return standing{Claim: c, Ticket: t, Verdict: procid.Verdict{Word: word, Reason: "the test says so"}}
}

// Who may write at all: the owner of the claim's generation, until its end, unless it is proven dead.
func TestWhoseTheClaimIs(t *testing.T) {
	a, b, other := jsGeneration("a"), jsGeneration("b"), jsGeneration("c")
	fenced := specRow{2, "fenced", "never-held", "none"}.claim().read(t)
	moved := *fenced
	moved.Resource = "/data/sessions/moved"
	legacy := specRow{1, "fenced", "never-held", "none"}.claim().read(t)
	closed := specRow{2, "closed", "never-held", "never-opened"}.claim().read(t)
	failed := specRow{2, "close-failed", "failed", "failed"}.claim().read(t)
	at := func(generation, pending string) Ticket {
		return Ticket{Resource: specResource, Generation: generation, Pending: pending}
	}
	for _, c := range []struct {
		name string
		s    standing
		code string // empty: ours
	}{
		{"at its generation", ticketed(fenced, at(a, ""), procid.Live), ""},
		{"at its generation, the next one pending", ticketed(fenced, at(a, b), procid.Live), ""},
		{"at its pending generation", ticketed(fenced, at(b, a), procid.Live), ""},
		{"at the pending generation of an admission", ticketed(fenced, at("", a), procid.Live), ""},
		{"its owner not proven dead", ticketed(fenced, at(a, ""), procid.Uncertain), ""},
		{"its owner on another host", ticketed(fenced, at(a, ""), procid.OtherHost), ""},
		{"its owner dead", ticketed(fenced, at(a, ""), procid.Dead), "transition-invalid"},
		{"no claim", ticketed(nil, at(a, ""), ""), "claim-missing"},
		{"at another generation", ticketed(fenced, at(other, ""), procid.Live), "generation-mismatch"},
		{"at another generation, something pending", ticketed(fenced, at(other, b), procid.Live), "generation-mismatch"},
		{"of another directory", ticketed(&moved, at(a, ""), procid.Live), "claim-resource-mismatch"},
		{"after its end", ticketed(closed, at(a, ""), procid.Live), "transition-invalid"},
		{"after its failed end", ticketed(failed, at(a, ""), procid.Live), "transition-invalid"},
		{"of schema 1, which is not written", ticketed(legacy, at(a, ""), procid.Live), "transition-invalid"},
		// The generation is judged before the state, and before the owner.
		{"ended at another generation", ticketed(closed, at(other, ""), procid.Live), "generation-mismatch"},
		{"failed at another generation", ticketed(failed, at(b, other), procid.Live), "generation-mismatch"},
		{"another generation of a dead owner", ticketed(fenced, at(other, ""), procid.Dead), "generation-mismatch"},
		{"schema 1 at another generation", ticketed(legacy, at(other, ""), procid.Live), "generation-mismatch"},
	} {
		t.Run(c.name, func(t *testing.T) {
			next, refusal := transit(Mark{To: Leased}, c.s, specWrite)
			switch {
			case c.code == "" && (refusal != nil || next.State != Leased || next.Generation != specWrite.Generation):
				t.Errorf("%+v, %v", next, refusal)
			case c.code != "" && (next != nil || refusal == nil || refusal.Code != c.code):
				t.Errorf("%+v, %+v", next, refusal)
			case c.code != "" && refusal.Claim != c.s.Claim:
				t.Error("the refusal does not carry the claim it was decided on")
			}
		})
	}
}

// A storage attempt is recorded for the owner of a claim from which storage can be opened.
func TestWhenAStorageOpenMayBeAttempted(t *testing.T) {
	for _, r := range possibleRows() {
		if r.schema == 1 {
			continue
		}
		c := r.claim().read(t)
		opens := r.state == "leased" || r.state == "storage-open"
		if refusal := standingAt(c, false).attemptable(); (refusal == nil) != opens {
			t.Errorf("%s: %v", r, refusal)
		}
		s := standingAt(c, false)
		s.Ticket.Generation = jsGeneration("c")
		if refusal := s.attemptable(); refusal == nil || refusal.Code != "generation-mismatch" {
			t.Errorf("%s at another generation: %v", r, refusal)
		}
	}
}

// An owner's whole life, in each schema: every claim of it is read again, at a new generation, with the same owner and the
// same first participation; what it was reclaimed from is on its first claim only.
func TestALifeCarriesItsFirstParticipationAndItsAdoption(t *testing.T) {
	for schema := 2; schema <= 3; schema++ {
		first := specRow{schema, "fenced", "never-held", "none"}.claim().
			before("lease", "reclaimedFrom", jsReclaimed("storage-open", "held")).before("lease", "adoptedFrom", jsAdopted()).read(t)
		c := first
		for i, to := range []State{Leased, StorageOpen, Closed} {
			w := write{Generation: jsGeneration([]string{"1", "2", "3"}[i]), At: specWrite.At}
			next, refusal := transit(Mark{To: to}, standingAt(c, true), w)
			if refusal != nil {
				t.Fatal(refusal)
			}
			again, err := Decode(next.Encode())
			if err != nil || !bytes.Equal(again.Encode(), next.Encode()) {
				t.Fatalf("%v: %s", err, next.Encode())
			}
			if next.State != to || next.Generation != w.Generation || next.Owner != first.Owner || next.SchemaVersion != schema || next.Selected != first.Selected ||
				next.FirstParticipation != first.FirstParticipation || *next.AdoptedFrom != *first.AdoptedFrom || next.ReclaimedFrom != nil {
				t.Errorf("%s", next.Encode())
			}
			if _, refusal := transit(Mark{To: to}, standingAt(c, true).withTicket(w.Generation), specWrite); refusal == nil || refusal.Code != "generation-mismatch" {
				t.Errorf("a mark of the next owner on the claim before: %v", refusal)
			}
			c = next
		}
	}
}

// withTicket is the standing with a ticket of another generation.
func (s standing) withTicket(generation string) standing {
	s.Ticket.Generation = generation
	return s
}

// What a kill leaves between the ticket and the claim is told by the ticket, whichever of the two was written.
func TestAPendingTicketNamesBothGenerations(t *testing.T) {
	a, b := jsGeneration("a"), jsGeneration("b")
	for _, c := range []struct {
		ticket Ticket
		names  []string
		not    []string
		last   string
	}{
		{Ticket{Generation: a}, []string{a}, []string{b, ""}, a},
		{Ticket{Pending: b}, []string{b}, []string{a, ""}, b},
		{Ticket{Generation: a, Pending: b}, []string{a, b}, []string{jsGeneration("c"), ""}, b},
		{Ticket{}, nil, []string{a, ""}, ""},
	} {
		for _, g := range c.names {
			if !c.ticket.names(g) {
				t.Errorf("%+v does not name %q", c.ticket, g)
			}
		}
		for _, g := range c.not {
			if c.ticket.names(g) {
				t.Errorf("%+v names %q", c.ticket, g)
			}
		}
		if c.ticket.last() != c.last {
			t.Errorf("%+v: last %q", c.ticket, c.ticket.last())
		}
	}
}

// An admission that is taken back before anything was done leaves the row that it replaced, under a new generation, or an
// end with nothing opened.
func TestWhatTakingAnAdmissionBackRestores(t *testing.T) {
	mine := specRow{3, "fenced", "never-held", "none"}.claim().with("owner.pid", 4711).read(t)
	for _, v := range validClaims() {
		if v.row.schema == 1 {
			continue // never written; what is put back over it is not decided here
		}
		replaced := v.doc.read(t)
		before := replaced.Encode()
		got := restored(&Admission{Claim: mine, Replaced: replaced}, specWrite)
		want := v.doc.with("generation", specWrite.Generation).with("writtenAt", specWrite.At).stringify()
		if string(got.Encode()) != want {
			t.Errorf("%s:\n%s, want\n%s", v.name, got.Encode(), want)
		}
		if !bytes.Equal(replaced.Encode(), before) {
			t.Errorf("%s: the row that was read is changed", v.name)
		}
	}
	want := specRow{3, "closed", "never-held", "never-opened"}.claim().with("owner.pid", 4711).with("end.at", specWrite.At).
		with("generation", specWrite.Generation).with("writtenAt", specWrite.At).stringify()
	if got := restored(&Admission{Claim: mine}, specWrite); string(got.Encode()) != want {
		t.Errorf("%s, want\n%s", got.Encode(), want)
	}
}

// A withdrawn reservation leaves the donor's own row, under a new generation, and nothing else.
func TestWhatAWithdrawalPutsBack(t *testing.T) {
	for _, donor := range possibleRows() {
		if donor.schema == 1 || donor.state == "reserved" {
			continue
		}
		doc := reservedOn(donor, "absent").before("reservation", "reclaimedFrom", jsReclaimed("close-failed", "unknown"))
		want := donor.claim().with("owner", jsOwner(4002)).with("generation", specWrite.Generation).with("writtenAt", specWrite.At)
		got := withdrawn(doc.read(t), specWrite)
		if string(got.Encode()) != want.stringify() {
			t.Errorf("%s:\n%s, want\n%s", donor, got.Encode(), want.stringify())
		}
		if refusal := got.writable(); refusal != nil {
			t.Errorf("%s: %v", donor, refusal)
		}
	}
}
