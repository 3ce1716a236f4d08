package fence

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"holdfast/pkg/procid"
	"holdfast/pkg/regfile"
)

// met is a situation that an operator meets: this claim, its owner of that verdict.
func met(c *Claim, word procid.Word) situation {
	return situation{Resource: specResource, Directory: specDirectory, Claim: c, Verdict: procid.Verdict{Word: word, Reason: "the test says so"}}
}

// breakAnswers is what a break is answered by the owner's verdict, without and with the operator's word that it is gone.
var breakAnswers = []struct {
	word         procid.Word
	plain, vouch string // a code; empty: broken
}{
	{procid.Live, "owner-live", "owner-live"},
	{procid.Uncertain, "owner-uncertain", ""},
	{"", "owner-uncertain", ""},
	{procid.OtherHost, "owner-other-host", ""},
	{procid.Dead, "owner-dead", "owner-dead"},
}

func TestWhatABreakIsAnswered(t *testing.T) {
	self := specOwner(31337)
	for _, v := range validClaims() {
		c := v.doc.read(t)
		for _, a := range breakAnswers {
			for _, vouch := range either {
				name := fmt.Sprintf("%s, owner %q, vouched for %v", v.name, a.word, vouch)
				b := Break{Generation: c.Generation, Reason: "the test", OwnerIsGone: vouch}
				want := a.plain
				if vouch {
					want = a.vouch
				}
				if c.State == Closed || c.SchemaVersion == SchemaLegacy {
					want = "transition-invalid" // nothing to break, or nothing that is ever written
				}
				next, refusal := breakDecision(b, met(c, a.word), self, specWrite)
				if want != "" {
					if next != nil || refusal == nil || refusal.Code != want || refusal.Claim != c {
						t.Errorf("%s: %+v, %+v; want %s", name, next, refusal, want)
					}
					continue
				}
				if refusal != nil {
					t.Errorf("%s: %v", name, refusal)
				} else if expected := brokenBy(c, self); !reflect.DeepEqual(next, expected) {
					t.Errorf("%s: writes\n%swant\n%s", name, next.Encode(), expected.Encode())
				}
			}
		}
	}
}

// brokenBy is what the specification has a break write.
func brokenBy(c *Claim, self procid.Identity) *Claim {
	want := &Claim{SchemaVersion: c.SchemaVersion, Resource: c.Resource, Selected: c.Selected, State: CloseFailed, Owner: self,
		Generation: specWrite.Generation, FirstParticipation: c.FirstParticipation, Lease: Released, WrittenAt: specWrite.At}
	if c.State == Reserved {
		from := c.Reservation.From
		want.State, want.Owner, want.Lease, want.End, want.Selected = from.State, from.Owner, from.Lease, from.End, from.Selected
		return want
	}
	if c.Lease == "held" || c.Lease == "unknown" {
		want.Lease = Unknown
	}
	want.ReclaimedFrom = &Reclaimed{c.Generation, c.State, c.Owner, c.Lease}
	want.End = &End{At: specWrite.At, Storage: StorageUnknown, Lease: want.Lease}
	return want
}

// The claim is looked at before its owner: there must be one, of this directory, at exactly the generation.
func TestABreakIsOfExactlyOneClaim(t *testing.T) {
	c := specRow{2, "leased", "held", "none"}.claim().read(t)
	moved := *c
	moved.Resource = "/data/sessions/moved"
	for _, a := range breakAnswers {
		for name, want := range map[string]struct {
			claim            *Claim
			generation       string
			broken, mismatch string // codes
		}{
			"no claim":                         {nil, c.Generation, "claim-missing", "claim-missing"},
			"another generation":               {c, jsGeneration("c"), "generation-mismatch", "generation-mismatch"},
			"of another directory":             {&moved, c.Generation, "claim-resource-mismatch", a.vouch},
			"this directory's, to move":        {c, c.Generation, a.vouch, "transition-invalid"},
			"another's at another generation":  {&moved, jsGeneration("c"), "claim-resource-mismatch", "generation-mismatch"},
			"the generation in another letter": {c, "A" + c.Generation[1:], "generation-mismatch", "generation-mismatch"},
		} {
			b := Break{Generation: want.generation, OwnerIsGone: true}
			next, refusal := breakDecision(b, met(want.claim, a.word), specOwner(31337), specWrite)
			if codeOf(refusal) != want.broken || (next == nil) != (want.broken != "") {
				t.Errorf("%s, owner %q: %+v, %+v; want %q", name, a.word, next, refusal, want.broken)
			}
			if want.mismatch == "owner-dead" {
				want.mismatch = "" // a dead owner's claim of another directory is moved all the same
			}
			if refusal := mismatchDecision(b, met(want.claim, a.word)); codeOf(refusal) != want.mismatch {
				t.Errorf("moving %s, owner %q: %+v; want %q", name, a.word, refusal, want.mismatch)
			}
		}
	}
}

func codeOf(r *Refusal) string {
	if r == nil {
		return ""
	}
	return r.Code
}

func TestWhichClaimOfAnotherDirectoryIsMoved(t *testing.T) {
	for _, p := range elsewhere(append(priors(t, true), priors(t, false)...)) {
		for _, a := range breakAnswers {
			for _, vouch := range either {
				want := a.plain
				if vouch {
					want = a.vouch
				}
				if p.claim.State == Closed || a.word == procid.Dead {
					want = ""
				}
				if refusal := mismatchDecision(Break{Generation: p.claim.Generation, OwnerIsGone: vouch}, met(p.claim, a.word)); codeOf(refusal) != want {
					t.Errorf("%s, owner %q, vouched for %v: %+v; want %q", p.name, a.word, vouch, refusal, want)
				}
			}
		}
	}
}

// A breaker's claim is itself taken over once the breaker is gone, with the native lease where the broken owner may have
// had it.
func TestWhatABreakLeavesIsJudgedByTheRows(t *testing.T) {
	for _, p := range priors(t, false) {
		if p.claim.State == Reserved || p.claim.SchemaVersion == SchemaLegacy {
			continue
		}
		next, refusal := breakDecision(Break{Generation: p.claim.Generation, OwnerIsGone: true}, met(p.claim, procid.Uncertain), specOwner(31337), specWrite)
		if refusal != nil {
			t.Fatal(refusal)
		}
		for _, lease := range either {
			s := met(next, procid.Dead)
			s.Lease = lease
			want := "owner-dead"
			switch {
			case p.attributed:
				want = "owner-dead-attributed"
			case lease:
				want = "owner-dead-lease-present"
			}
			if got := s.row().Name; got != want {
				t.Errorf("%s, lease %v: %s, want %s", p.name, lease, got, want)
			}
		}
	}
}

func TestWhichNativeLeasesAreCleared(t *testing.T) {
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	old, young := now.Add(-time.Hour), now.Add(-59*time.Second)
	lease := func(path string, kind regfile.Kind, mtime time.Time) NativeLease {
		return NativeLease{Path: path, Kind: kind, Mtime: mtime}
	}
	dir, young2 := lease("/a.lock", regfile.Directory, old), lease("/b.lock", regfile.Directory, young)
	closed := specRow{2, "closed", "released", "closed"}.claim().read(t)
	leased := specRow{2, "leased", "held", "none"}.claim().read(t)
	fenced := specRow{2, "fenced", "never-held", "none"}.claim().read(t)
	moved := *closed
	moved.Resource = "/data/sessions/moved"
	for _, c := range []struct {
		name   string
		s      situation
		mtime  time.Time
		found  []NativeLease
		chosen int
		code   string
	}{
		{"no claim", met(nil, ""), old, []NativeLease{dir}, 1, ""},
		{"closed", met(closed, procid.Live), old, []NativeLease{dir}, 1, ""},
		{"a dead owner that had it", met(leased, procid.Dead), old, []NativeLease{dir}, 1, ""},
		{"a dead owner that never had it", met(fenced, procid.Dead), old, []NativeLease{dir}, 1, ""},
		{"both names, one of that time", met(nil, ""), old, []NativeLease{young2, dir}, 1, ""},
		{"both names of one time", met(nil, ""), old, []NativeLease{dir, lease("/b.lock", regfile.Directory, old)}, 2, ""},
		{"a live owner", met(leased, procid.Live), old, []NativeLease{dir}, 0, "owner-live"},
		{"an owner not proven dead", met(leased, procid.Uncertain), old, []NativeLease{dir}, 0, "owner-uncertain"},
		{"an owner on another host", met(leased, procid.OtherHost), old, []NativeLease{dir}, 0, "owner-other-host"},
		{"the claim of another directory", met(&moved, procid.Dead), old, []NativeLease{dir}, 0, "claim-resource-mismatch"},
		{"no lease", met(nil, ""), old, nil, 0, "lease-absent"},
		{"another time", met(nil, ""), old.Add(time.Nanosecond), []NativeLease{dir}, 0, "lease-mismatch"},
		{"a young one", met(nil, ""), young, []NativeLease{young2}, 0, "lease-too-young"},
		{"one from the future", met(nil, ""), now.Add(time.Hour), []NativeLease{lease("/a.lock", regfile.Directory, now.Add(time.Hour))}, 0, "lease-too-young"},
		{"of exactly the age", met(nil, ""), now.Add(-time.Minute), []NativeLease{lease("/a.lock", regfile.Directory, now.Add(-time.Minute))}, 1, ""},
		{"a file", met(nil, ""), old, []NativeLease{lease("/a.lock", regfile.Regular, old)}, 0, "lease-not-empty"},
		{"a symlink", met(nil, ""), old, []NativeLease{lease("/a.lock", regfile.Symlink, old)}, 0, "lease-not-empty"},
		{"a directory and a file of one time", met(nil, ""), old, []NativeLease{dir, lease("/b.lock", regfile.Regular, old)}, 0, "lease-not-empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			chosen, refusal := clearDecision(LeaseClear{Mtime: c.mtime, MinAge: time.Minute}, c.s, c.found, now)
			if len(chosen) != c.chosen || codeOf(refusal) != c.code {
				t.Errorf("%+v, %+v; want %d, %q", chosen, refusal, c.chosen, c.code)
			}
		})
	}
}

// What the hold adds to a verdict: a locked one keeps the dead alive; a free one of exactly this owner, on a filesystem of
// this kernel alone, ends what could not be proven.
func TestWhatTheHoldAddsToAVerdict(t *testing.T) {
	owner, other := specOwner(100), specOwner(101)
	again := owner
	again.StartKey += "0"
	renamed := owner
	renamed.Hostname = "vm2"
	for _, word := range []procid.Word{procid.Live, procid.Dead, procid.Uncertain, procid.OtherHost} {
		for _, state := range []HoldState{HoldAbsent, HoldFree, HoldBusy} {
			for _, named := range []procid.Identity{{}, owner, other, again, renamed} {
				for _, local := range either {
					unproven := word == procid.Uncertain || word == procid.OtherHost
					want := word
					switch {
					case word == procid.Live && state == HoldFree && named == owner:
						continue // an owner that lives and has let go of its own hold: not decided here
					case state == HoldBusy && word == procid.Dead:
						want = procid.Uncertain
					case state == HoldFree && named == owner && local && unproven:
						want = procid.Dead
					}
					got := judged(procid.Verdict{Word: word, Reason: "r"}, owner, Hold{State: state, Owner: named}, local)
					if got.Word != want || got.Reason == "" {
						t.Errorf("%s, hold %s of %+v, local %v: %+v, want %s", word, state, named, local, got, want)
					}
				}
			}
		}
	}
}
