package fence

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"holdfast/pkg/procid"
	"holdfast/pkg/regfile"
)

var specChild = procid.Identity{PID: 6001, StartKey: "linux:9", Hostname: "vm"}

// adoptable is a real directory that is reserved for the garden's child, and the child's request. Nothing is in the way.
type adoptable struct {
	root string
	in   adopting
	req  Adoption
}

// newAdoptable reserves at schema 2 or 3, on a closed donor.
func newAdoptable(t testing.TB, schema int) *adoptable {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	x := &adoptable{root: root}
	dir, profile := filepath.Join(root, "s1"), ""
	if schema == 2 {
		profile = filepath.Join(root, "p")
		dir = layout(profile, specCWD, "s1")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	text := reservedOn(specRow{schema, "closed", "released", "closed"}, "absent").stringify()
	for _, r := range [][2]string{{specResource, dir}, {specDirectory, dir}, {specPlain, dir}, {specProfile, profile}} {
		text = strings.ReplaceAll(text, `"`+r[0]+`"`, `"`+r[1]+`"`)
	}
	c, err := Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	x.in = adopting{Resource: dir, Claim: c, binding: bindingOf(donorOf(c))}
	x.req = Adoption{
		Request:   Request{Session: "s1", Profile: profile, Owner: specChild, Ticket: "/tickets/t"},
		Directory: dir, Garden: Garden{ID: specGarden, MetaRoot: "/meta"}, Generation: c.Generation,
	}
	return x
}

// edit changes the claim that is met.
func (x *adoptable) edit(change func(c *Claim)) { x.in.Claim = edited(x.in.Claim, change) }

// path is one below the root.
func (x *adoptable) path(name string) string { return filepath.Join(x.root, name) }

// adoptRow is a row of the order in which an adoption is refused.
type adoptRow struct {
	name, code string
	schema     int // 0: either
	make       func(t testing.TB, x *adoptable)
}

// adoptOrder are the specification's rows, in its order; after the first, that there is no claim at all.
var adoptOrder = []adoptRow{
	{"names another resource", CodeResourceMismatch, 0, func(_ testing.TB, x *adoptable) { x.edit(func(c *Claim) { c.Resource = "/elsewhere" }) }},
	{"not reserved", CodeAdoptNotReserved, 0, func(_ testing.TB, x *adoptable) {
		x.edit(func(c *Claim) { c.State, c.Lease, c.End = Closed, Released, c.Reservation.From.End })
	}},
	{"generation", CodeAdoptGenerationMismatch, 0, func(_ testing.TB, x *adoptable) { x.req.Generation = jsGeneration("d") }},
	{"the record's attachIncarnation", CodeAdoptBindingChanged, 0, func(_ testing.TB, x *adoptable) { x.in.Record.AttachIncarnation = "another" }},
	{"the directory does not resolve", regfile.CodeDirectoryInvalid, 0, func(_ testing.TB, x *adoptable) { x.req.Directory = x.path("nowhere") }},
	{"another garden", CodeAdoptReservationMismatch, 0, func(_ testing.TB, x *adoptable) { x.req.Garden.ID = "20261130T050322-ffffff" }},
	{"the record's session", CodeAdoptReservationMismatch, 0, func(_ testing.TB, x *adoptable) { x.in.Record.NativeSessionID = "s2" }},
	{"the record's cwd", CodeAdoptReservationMismatch, 0, func(_ testing.TB, x *adoptable) { x.in.Record.CWD = "/another" }},
	{"the directory's realpath", CodeAdoptReservationMismatch, 0, func(t testing.TB, x *adoptable) {
		x.req.Directory = x.path("another")
		if err := os.Mkdir(x.req.Directory, 0o755); err != nil {
			t.Fatal(err)
		}
	}},
	{"profile differs", CodeAdoptProfileMismatch, 2, func(_ testing.TB, x *adoptable) { x.req.Profile = "/another" }},
	{"profile in the reservation only", CodeAdoptProfileMismatch, 2, func(_ testing.TB, x *adoptable) { x.req.Profile = "" }},
	{"profile in the request only", CodeAdoptProfileMismatch, 3, func(_ testing.TB, x *adoptable) { x.req.Profile = "/another" }},
	{"directory ≠ the claim's selection", CodeAdoptProfileMismatch, 0, func(t testing.TB, x *adoptable) {
		x.req.Directory = x.path("alias")
		if err := os.Symlink(x.in.Resource, x.req.Directory); err != nil {
			t.Fatal(err)
		}
	}},
	{"session ≠ n", CodeAdoptProfileMismatch, 0, func(_ testing.TB, x *adoptable) { x.req.Session = "s2" }},
	{"the join with the record's cwd ≠ directory", CodeAdoptProfileMismatch, 2, func(_ testing.TB, x *adoptable) {
		x.in.Record.CWD = "/moved"
		x.edit(func(c *Claim) { c.Reservation.CWD = "/moved" })
	}},
	{"the parent's host", CodeOwnerOtherHost, 0, func(_ testing.TB, x *adoptable) { x.edit(func(c *Claim) { c.Owner = elsewhereOwner() }) }},
	{"nativeLease absent but a lease is there now", CodeAdoptLeaseAppeared, 0, func(t testing.TB, x *adoptable) {
		if err := os.Mkdir(x.in.Resource+".lock", 0o755); err != nil {
			t.Fatal(err)
		}
	}},
}

func (x *adoptable) decided() string {
	_, r, err := x.in.decide(x.req, specWrite)
	return answerOf(r, err)
}

func (row adoptRow) applies(schema int) bool { return row.schema == 0 || row.schema == schema }

func TestEachRowOfAnAdoptionsRefusals(t *testing.T) {
	for _, schema := range []int{2, 3} {
		for _, row := range adoptOrder {
			if !row.applies(schema) {
				continue
			}
			t.Run(row.name, func(t *testing.T) {
				x := newAdoptable(t, schema)
				if code := x.decided(); code != "" {
					t.Fatal("the base is refused:", code)
				}
				row.make(t, x)
				if code := x.decided(); code != row.code {
					t.Errorf("schema %d: answered with %q, want %q", schema, code, row.code)
				}
			})
		}
	}
	x := newAdoptable(t, 3)
	if x.in.Claim = nil; x.decided() != CodeAdoptNotReserved {
		t.Errorf("no claim is answered with %q", x.decided())
	}
}

// TestAnEarlierRefusalOfAnAdoptionWins makes every two rows apply at once.
func TestAnEarlierRefusalOfAnAdoptionWins(t *testing.T) {
	for _, schema := range []int{2, 3} {
		for i, earlier := range adoptOrder {
			for _, later := range adoptOrder[i+1:] {
				if !earlier.applies(schema) || !later.applies(schema) {
					continue
				}
				x := newAdoptable(t, schema)
				later.make(t, x)
				earlier.make(t, x)
				if code := x.decided(); code != earlier.code {
					t.Errorf("schema %d: %s, and %s: answered with %q, want %q", schema, earlier.name, later.name, code, earlier.code)
				}
			}
		}
	}
}

// TestAnAdoptionIsOfTheReservationAlone: what is written, member by member, whether the lease that is attributed is there or not,
// and whatever has become of the parent, whose liveness nobody asks.
func TestAnAdoptionIsOfTheReservationAlone(t *testing.T) {
	for _, schema := range []int{2, 3} {
		for _, lease := range either {
			x := newAdoptable(t, schema)
			x.edit(func(c *Claim) {
				c.Reservation.NativeLease, c.Reservation.From.State, c.Reservation.From.Lease, c.Reservation.From.End = leasePresent, StorageOpen, Held, nil
				c.ReclaimedFrom = &Reclaimed{Generation: jsGeneration("e"), State: StorageOpen, Owner: specChild, LeaseOutcome: Held}
			})
			if lease {
				if err := os.Mkdir(x.in.Resource+".lock", 0o755); err != nil {
					t.Fatal(err)
				}
			}
			was := x.in.Claim
			c, r, err := x.in.decide(x.req, specWrite)
			want := &Claim{
				SchemaVersion: schema, Resource: was.Resource, Selected: was.Selected, State: Fenced, Owner: specChild, Generation: specWrite.Generation,
				FirstParticipation: was.FirstParticipation, Lease: NeverHeld, WrittenAt: specWrite.At,
				AdoptedFrom: &AdoptedRow{Generation: was.Generation, Owner: was.Owner},
			}
			if r != nil || err != nil || !reflect.DeepEqual(c, want) {
				t.Errorf("schema %d, lease %v: refused with %q, wrote %+v, want %+v", schema, lease, answerOf(r, err), c, want)
			}
		}
	}
}

// TestAnAdoptionIsCheckedBeforeTheArmLock: what can never be adopted is refused before anything is made or read.
func TestAnAdoptionIsCheckedBeforeTheArmLock(t *testing.T) {
	for _, row := range []struct {
		name, code string
		make       func(req *Adoption)
	}{
		{"no garden id", CodeReservationInvalid, func(req *Adoption) { req.Garden.ID = "x" }},
		{"a relative meta root", CodeReservationInvalid, func(req *Adoption) { req.Garden.MetaRoot = "meta" }},
		{"no generation", CodeReservationInvalid, func(req *Adoption) { req.Generation = "A" }},
		{"no ticket", CodeAdmissionInvalid, func(req *Adoption) { req.Ticket = "" }},
		{"a session that is no name", CodeAdmissionInvalid, func(req *Adoption) { req.Session = "a/b" }},
		{"no owner", CodeAdmissionInvalid, func(req *Adoption) { req.Owner = procid.Identity{} }},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := newAdoptable(t, 3)
			x.req.Garden.MetaRoot = x.root
			if row.code == CodeReservationInvalid {
				x.req.Ticket = "" // the reservation is looked at first
			}
			row.make(&x.req)
			if _, _, err := Adopt(context.Background(), x.req, Options{}); answerOf(nil, err) != row.code {
				t.Errorf("answered with %v, want %s", err, row.code)
			}
			if left, _ := os.ReadDir(x.root); len(left) != 1 {
				t.Errorf("it made %v", left)
			}
		})
	}
}
