package fence

import (
	"errors"
	"reflect"
	"testing"

	"holdfast/pkg/procid"
	"holdfast/pkg/regfile"
)

var specParent = procid.Identity{PID: 5001, StartKey: "linux:9", Hostname: "vm"}

var specReserve = Reserve{Garden: Garden{ID: specGarden, MetaRoot: "/meta"}, Owner: specParent}

// reservable is a situation in which a reservation is made: nothing is in the way, and there is no native lease.
func reservable(c *Claim) reserving {
	in := reserving{situation: situation{Resource: c.Resource, Claim: c}, binding: bindingOf(donorOf(c)), sameHost: true, donorResolves: c.Resource}
	if c.State != Closed {
		in.Verdict = procid.Verdict{Word: procid.Dead, Reason: "the test says so"}
	}
	return in
}

// reserveBases are reservable rows of each kind.
func reserveBases(t testing.TB) map[string]*Claim {
	closed2, closed3 := specRow{2, "closed", "released", "closed"}, specRow{3, "closed", "released", "closed"}
	return map[string]*Claim{
		"closed":                  handed(t, closed2.claim()),
		"closed, schema 3":        handed(t, closed3.claim()),
		"a dead owner's":          handed(t, specRow{2, "storage-open", "held", "none"}.claim()),
		"a dead parent's":         handed(t, reservedOn(closed2, "absent")),
		"a dead parent's, plain":  handed(t, reservedOn(closed3, "absent")),
		"a dead parent's, leased": handed(t, reservedOn(specRow{2, "leased", "held", "none"}, "present-attributed")),
	}
}

// reserveRow is a row of the order in which a reservation is refused.
type reserveRow struct {
	name, code string
	applies    func(in reserving) bool // nil: to every base
	make       func(in *reserving)
}

func holderRow(name, code string, word procid.Word) reserveRow {
	return reserveRow{"not closed and the holder " + name, code, nil, func(in *reserving) {
		in.Verdict = procid.Verdict{Word: word, Reason: "the test says so"}
		if in.Claim.State == Closed {
			in.Claim = edited(in.Claim, func(c *Claim) { c.State, c.Lease, c.End = StorageOpen, Held, nil })
		}
	}}
}

func notReserved(in reserving) bool { return in.Claim.State != Reserved }

// reserveOrder are the specification's rows, in its order.
var reserveOrder = []reserveRow{
	{"no claim", CodeReserveUnarmed, nil, func(in *reserving) { in.Claim = nil }},
	{"resource differs", CodeResourceMismatch, nil, func(in *reserving) { in.Claim = edited(in.Claim, func(c *Claim) { c.Resource = "/elsewhere" }) }},
	holderRow("on another host", CodeOwnerOtherHost, procid.OtherHost),
	holderRow("live", CodeOwnerLive, procid.Live),
	holderRow("uncertain", CodeOwnerUncertain, procid.Uncertain),
	holderRow("not judged", CodeOwnerUncertain, ""),
	{"closed with end.storage ≠ closed", CodeReserveNotClean, notReserved, func(in *reserving) {
		in.Claim = edited(in.Claim, func(c *Claim) {
			c.State, c.Lease, c.End = Closed, Released, &End{At: specTime, Storage: NeverOpened, Lease: Released}
		})
	}},
	{"donor's host is not this one", CodeProfileOtherHost, nil, func(in *reserving) { in.sameHost = false }},
	{"donor's pid is not the location's", CodeProfileUnattributed, nil, func(in *reserving) { in.Location.OwnerPID++ }},
	{"donor's start key is not the location's", CodeProfileUnattributed, nil, func(in *reserving) { in.Location.OwnerStartKey += "1" }},
	{"donor's n is not the record's session", CodeProfileNMismatch, nil, func(in *reserving) { in.Record.NativeSessionID = "s2" }},
	{"schema 1 donor", CodeProfileUnattributed, notReserved, func(in *reserving) {
		in.Claim = edited(in.Claim, func(c *Claim) { c.SchemaVersion, c.Selected.Profile = 1, "" })
	}},
	{"schema 2 and the join ≠ selection", CodeLayoutMismatch, func(in reserving) bool { return in.Claim.SchemaVersion == 2 },
		func(in *reserving) { in.Record.CWD = "/elsewhere" }},
	{"selection cannot be looked up", regfile.CodeIO, nil, func(in *reserving) { in.resolveErr = regfile.IOError("resolve", "/x", errors.New("EIO")) }},
	{"selection does not resolve", CodeAliasMoved, nil, func(in *reserving) { in.donorResolves = "" }},
	{"selection does not resolve to R", CodeAliasMoved, nil, func(in *reserving) { in.donorResolves = "/data/sessions/s2" }},
	{"the native lease cannot be looked up", regfile.CodeIO, nil, func(in *reserving) { in.leaseErr = regfile.IOError("stat", "/x", errors.New("EIO")) }},
	{"closed, native lease present", CodeLegacyLease, func(in reserving) bool { return in.Claim.State == Closed }, func(in *reserving) { in.Lease = true }},
	{"reserved, had absent, native lease present", CodeLeaseAppeared, func(in reserving) bool {
		return in.Claim.State == Reserved && in.Claim.Reservation.NativeLease == leaseAbsent
	}, func(in *reserving) { in.Lease = true }},
}

// decided is the code that the situation is answered with.
func (in reserving) decided() (string, *Refusal) {
	_, r, err := in.decide(specReserve, specWrite)
	return answerOf(r, err), r
}

func TestEachRowOfAReservationsRefusals(t *testing.T) {
	for base, c := range reserveBases(t) {
		for _, row := range reserveOrder {
			in := reservable(c)
			if row.applies != nil && !row.applies(in) {
				continue
			}
			t.Run(row.name+"/"+base, func(t *testing.T) {
				if code, _ := in.decided(); code != "" {
					t.Fatal("the base is refused:", code)
				}
				row.make(&in)
				code, r := in.decided()
				if code != row.code {
					t.Fatalf("answered with %q, want %q", code, row.code)
				}
				holder := code == CodeOwnerOtherHost || code == CodeOwnerLive || code == CodeOwnerUncertain
				if r != nil && holder != (r.HolderState != "") || holder && r.HolderState != in.Claim.State {
					t.Errorf("the holder's state is %q", r.HolderState)
				}
			})
		}
	}
}

// TestAnEarlierRefusalOfAReservationWins makes every two rows apply at once.
func TestAnEarlierRefusalOfAReservationWins(t *testing.T) {
	for base, c := range reserveBases(t) {
		for i, earlier := range reserveOrder {
			for _, later := range reserveOrder[i+1:] {
				in := reservable(c)
				if later.applies != nil && !later.applies(in) || earlier.applies != nil && !earlier.applies(in) {
					continue
				}
				later.make(&in)
				earlier.make(&in)
				if code, _ := in.decided(); code != earlier.code {
					t.Errorf("%s: %s, and %s: answered with %q, want %q", base, earlier.name, later.name, code, earlier.code)
				}
			}
		}
	}
}

// reserveLease is the specification's table of the native lease: what a reservation over the claim records when one is present,
// or the refusal.
func reserveLease(v specClaim) (present string, refused bool) {
	switch {
	case v.row.state == "closed":
		return "legacy-lease-present", true
	case v.row.state == "reserved" && v.doc.get("reservation.nativeLease") == "absent":
		return "lease-appeared", true
	case v.row.state == "reserved", v.row.lease == "held", v.row.lease == "unknown":
		return "present-attributed", false
	}
	return "lease-unattributed", true
}

// TestEachRowOfTheReservationsLeaseTable goes through every claim that can be reserved.
func TestEachRowOfTheReservationsLeaseTable(t *testing.T) {
	seen := map[string]int{}
	for _, v := range validClaims() {
		if v.row.schema == 1 || v.row.state == "closed" && v.row.storage != "closed" {
			continue
		}
		want, refused := reserveLease(v)
		seen[want]++
		for _, present := range either {
			in := reservable(handed(t, v.doc))
			in.Lease = present
			c, r, err := in.decide(specReserve, specWrite)
			switch {
			case present && refused:
				if answerOf(r, err) != want || c != nil {
					t.Errorf("%s, present: %q, want %q", v.name, answerOf(r, err), want)
				}
			case r != nil || err != nil:
				t.Errorf("%s, present %v: refused with %q", v.name, present, answerOf(r, err))
			case present:
				reservedAs(t, v.name, in, c, want)
			default:
				reservedAs(t, v.name, in, c, "absent")
			}
		}
	}
	if len(seen) != 4 {
		t.Errorf("the claims have met %v", seen)
	}
}

// reservedAs checks every member of a reservation against the specification.
func reservedAs(t *testing.T, name string, in reserving, c *Claim, native string) {
	t.Helper()
	was := in.Claim
	from := Donor{Generation: was.Generation, State: was.State, Owner: was.Owner, Lease: was.Lease, End: was.End, Selected: was.Selected}
	if was.State == Reserved {
		from = was.Reservation.From
	}
	want := &Claim{
		SchemaVersion: 3, Resource: in.Resource, Selected: from.Selected, State: Reserved, Owner: specParent, Generation: specWrite.Generation,
		FirstParticipation: was.FirstParticipation, Lease: NeverHeld, WrittenAt: specWrite.At,
		Reservation: &Reservation{
			GardenID: specGarden, N: from.Selected.N, CWD: specCWD, Resource: in.Resource, Profile: from.Selected.Profile,
			AttachIncarnation: specIncarnation, NativeLease: native, From: from,
		},
	}
	if from.Selected.Profile != "" {
		want.SchemaVersion = 2
	}
	if was.State != Closed {
		want.ReclaimedFrom = &Reclaimed{Generation: was.Generation, State: was.State, Owner: was.Owner, LeaseOutcome: was.Lease}
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("%s: wrote\n%s, want\n%s", name, c.Encode(), want.Encode())
	}
	if read, err := Decode(c.Encode()); err != nil || !reflect.DeepEqual(read, c) {
		t.Errorf("%s: what was written is read as %v (%v)", name, read, err)
	}
}
