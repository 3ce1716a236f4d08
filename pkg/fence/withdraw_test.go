package fence

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"holdfast/pkg/procid"
)

// placed is a real directory with the claim of a plain row, which names it; none with a nil document.
func placed(t *testing.T, doc jsObject) *Fence {
	t.Helper()
	f, err := Open(t.TempDir(), false, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if doc != nil {
		text := strings.ReplaceAll(doc.stringify(), `"`+specResource+`"`, `"`+f.Resource()+`"`)
		place(t, f, strings.ReplaceAll(text, `"`+specPlain+`"`, `"`+f.Resource()+`"`))
	}
	return f
}

func place(t *testing.T, f *Fence, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(f.Resource(), ClaimName), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// planted is the content of the claim file; empty when there is none.
func planted(f *Fence) string {
	content, _ := os.ReadFile(filepath.Join(f.Resource(), ClaimName))
	return string(content)
}

var plainClosed = specRow{3, "closed", "released", "closed"}

// parentOf is the owner that reservedOn records.
var parentOf = procid.Identity{PID: 4001, StartKey: "linux:123456", Hostname: "vm"}

func TestEachRowOfAWithdrawal(t *testing.T) {
	reserved := reservedOn(plainClosed, "absent")
	own := jsGeneration("a")
	type row struct {
		name, code string
		doc        jsObject
		generation string
		owner      procid.Identity
	}
	rows := []row{
		{"no claim", CodeWithdrawNotOwn, nil, own, parentOf},
		{"names another resource", CodeResourceMismatch, specRow{3, "closed", "released", "closed"}.claim().with("resource", "/elsewhere"), own, parentOf},
		{"another generation", CodeWithdrawNotOwn, reserved, jsGeneration("d"), parentOf},
		{"another pid", CodeWithdrawNotOwn, reserved, own, procid.Identity{PID: 4002, StartKey: parentOf.StartKey, Hostname: parentOf.Hostname}},
		{"another start key", CodeWithdrawNotOwn, reserved, own, procid.Identity{PID: 4001, StartKey: "linux:123457", Hostname: parentOf.Hostname}},
		{"another host", CodeWithdrawNotOwn, reserved, own, procid.Identity{PID: 4001, StartKey: parentOf.StartKey, Hostname: "elsewhere"}},
	}
	for _, r := range possibleRows() {
		if r.schema == 3 && r.state != "reserved" {
			rows = append(rows, row{r.String(), CodeWithdrawNotOwn, r.claim(), own, parentOf})
		}
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			f := placed(t, r.doc)
			before := planted(f)
			c, err := f.Withdraw(context.Background(), r.generation, r.owner)
			if answerOf(nil, err) != r.code || c != nil {
				t.Errorf("answered with %v, want %s", err, r.code)
			}
			if planted(f) != before {
				t.Errorf("a refusal wrote\n%s", planted(f))
			}
		})
	}
}

// TestAWithdrawalPutsTheDonorsRowBack for every donor: its own row under a new generation, and nothing else.
func TestAWithdrawalPutsTheDonorsRowBack(t *testing.T) {
	for _, donor := range possibleRows() {
		if donor.schema != 3 || donor.state == "reserved" {
			continue
		}
		t.Run(donor.String(), func(t *testing.T) {
			f := placed(t, reservedOn(donor, "absent").before("reservation", "reclaimedFrom", jsReclaimed("storage-open", "held")))
			was, err := Decode([]byte(planted(f)))
			if err != nil {
				t.Fatal(err)
			}
			c, err := f.Withdraw(context.Background(), was.Generation, parentOf)
			if err != nil {
				t.Fatal(err)
			}
			d := was.Reservation.From
			want := &Claim{
				SchemaVersion: 3, Resource: f.Resource(), Selected: d.Selected, State: d.State, Owner: d.Owner, Generation: c.Generation,
				FirstParticipation: was.FirstParticipation, Lease: d.Lease, End: d.End, WrittenAt: c.WrittenAt,
			}
			if !reflect.DeepEqual(c, want) || c.Generation == was.Generation || c.Generation == d.Generation || planted(f) != string(want.Encode()) {
				t.Errorf("withdrawn to\n%s, want\n%s", planted(f), want.Encode())
			}
		})
	}
}

func TestEachRowOfAnObservation(t *testing.T) {
	ours := jsGeneration("a")
	adopted := func(row specRow, generation string) jsObject {
		return row.claim().before("lease", "adoptedFrom", js("generation", generation, "owner", jsOwner(4004)))
	}
	type row struct {
		name string
		doc  jsObject
		want Observation
		code string
	}
	rows := []row{
		{"reserved at the generation", reservedOn(plainClosed, "absent"), NotYetAdopted, ""},
		{"reserved at another generation", reservedOn(plainClosed, "absent").with("generation", jsGeneration("9")), Lost, ""},
		{"no claim", nil, Unobserved, CodeClaimMissing},
		{"names another resource", plainClosed.claim().with("resource", "/elsewhere"), Unobserved, CodeResourceMismatch},
		{"unreadable", plainClosed.claim().without("lease"), Unobserved, CodeClaimUnreadable},
		{"of a newer schema", plainClosed.claim().with("schemaVersion", 4), Unobserved, CodeSchemaNewer},
	}
	for _, r := range possibleRows() {
		if r.schema == 3 && r.state != "reserved" {
			rows = append(rows, row{r.String() + ", adopted from it", adopted(r, ours), Adopted, ""},
				row{r.String() + ", adopted from another", adopted(r, jsGeneration("9")), Lost, ""},
				row{r.String() + ", at the generation", r.claim(), Lost, ""})
		}
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			f := placed(t, r.doc)
			before := planted(f)
			what, _, err := f.Observe(ours)
			if what != r.want || answerOf(nil, err) != r.code {
				t.Errorf("observed %s, %v; want %s, %q", what, err, r.want, r.code)
			}
			if planted(f) != before {
				t.Error("an observation wrote")
			}
		})
	}
}
