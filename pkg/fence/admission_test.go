package fence

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"holdfast/pkg/procid"
)

const specOtherPlain = "/home/u/alias-of-s1"

// specWrite is what the writes of these tests bring.
var specWrite = write{Generation: strings.Repeat("9", 32), At: "2026-12-01T00:00:00.000Z"}

func specOwner(pid int) procid.Identity {
	return procid.Identity{PID: pid, StartKey: "linux:777@5c1e7f7e-9f3b-4a43-8a4b-0e6d8f1f2a3b/4026531836", Hostname: "vm"}
}

// prior is a claim that an admission may meet; attributed says whether its dead owner may have had the native lease, and
// only there for a reserved one.
type prior struct {
	name       string
	claim      *Claim
	attributed bool
}

// priors are the valid claims of a kind: closed ones or the others.
func priors(t *testing.T, closed bool) (all []prior) {
	for _, v := range validClaims() {
		if (v.row.state == "closed") == closed {
			attributed := v.row.lease == "held" || v.row.lease == "unknown" || v.doc.get("reservation") != nil && v.doc.get("reservation.nativeLease") == "present-attributed"
			all = append(all, prior{v.name, v.doc.read(t), attributed})
		}
	}
	return all
}

// admissionCell is one situation, for which exactly one row is right.
type admissionCell struct {
	name string
	s    situation
	req  Request
}

// around varies what a row does not depend on: the request's profile, which name of the directory it selects, whether this
// call made the directory, and what each of the varying arguments lists.
type around struct {
	created, lease []bool
	words          []procid.Word
	directories    func(profile bool) []string
}

var (
	either      = []bool{false, true}
	everyWord   = []procid.Word{procid.Live, procid.Dead, procid.Uncertain, procid.OtherHost, ""}
	unproven    = []procid.Word{procid.Uncertain, ""}
	deadOnly    = []procid.Word{procid.Dead}
	everySelect = func(profile bool) []string {
		if profile {
			return []string{specDirectory, specAlias}
		}
		return []string{specPlain, specOtherPlain}
	}
)

func (a around) cells(claims ...prior) (cells []admissionCell) {
	if len(claims) == 0 {
		claims = []prior{{name: "none"}}
	}
	for _, p := range claims {
		for _, profile := range either {
			for _, directory := range a.directories(profile) {
				for _, created := range a.created {
					for _, lease := range a.lease {
						for _, word := range a.words {
							req := Request{Session: "s1", Owner: specOwner(4242), Ticket: "/tickets/t"}
							if profile {
								req.Profile = specProfile
							}
							s := situation{Resource: specResource, Directory: directory, Created: created, Claim: p.claim, Lease: lease,
								Verdict: procid.Verdict{Word: word, Reason: "the test says so"}}
							name := fmt.Sprintf("%s, selecting %s, made %v, lease %v, owner %q", p.name, directory, created, lease, word)
							cells = append(cells, admissionCell{name, s, req})
						}
					}
				}
			}
		}
	}
	return cells
}

// elsewhere lets claims name another resource.
func elsewhere(claims []prior) (all []prior) {
	for _, p := range claims {
		c := *p.claim
		c.Resource = "/data/sessions/moved"
		if c.Reservation != nil {
			r := *c.Reservation
			r.Resource, c.Reservation = c.Resource, &r
		}
		all = append(all, prior{p.name, &c, p.attributed})
	}
	return all
}

// admissionCells are the cells of each row, by the specification's table.
func admissionCells(t *testing.T) map[string][]admissionCell {
	closed, others := priors(t, true), priors(t, false)
	no, yes := []bool{false}, []bool{true}
	live := []procid.Word{procid.Live}
	cells := map[string][]admissionCell{
		"resource-mismatch":     around{either, either, everyWord, everySelect}.cells(elsewhere(append(closed, others...))...),
		"fresh":                 around{yes, either, everyWord, everySelect}.cells(),
		"unarmed-lease-present": around{no, yes, everyWord, everySelect}.cells(),
		"unarmed":               around{no, no, everyWord, everySelect}.cells(),
		"closed-lease-present":  around{either, yes, everyWord, everySelect}.cells(closed...),
		"closed":                around{either, no, everyWord, everySelect}.cells(closed...),
		"owner-other-host":      around{either, either, []procid.Word{procid.OtherHost}, everySelect}.cells(others...),
		"owner-live":            around{either, either, live, everySelect}.cells(others...),
		"owner-uncertain":       around{either, either, unproven, everySelect}.cells(others...),
	}
	for _, p := range others {
		mine, strange := everySelect, noSelect
		if p.claim.State == Reserved {
			mine, strange = selecting(p.claim.Reservation.From.Selected.Directory) // attributed to the donor's own selection only
		}
		if !p.attributed {
			mine, strange = noSelect, everySelect
		}
		cells["owner-dead-attributed"] = append(cells["owner-dead-attributed"], around{either, either, deadOnly, mine}.cells(p)...)
		cells["owner-dead-lease-present"] = append(cells["owner-dead-lease-present"], around{either, yes, deadOnly, strange}.cells(p)...)
		cells["owner-dead"] = append(cells["owner-dead"], around{either, no, deadOnly, strange}.cells(p)...)
	}
	return cells
}

func noSelect(bool) []string { return nil }

// selecting divides the directories that requests select into that one and the others.
func selecting(directory string) (it, others func(profile bool) []string) {
	divide := func(same bool) func(bool) []string {
		return func(profile bool) (chosen []string) {
			for _, d := range everySelect(profile) {
				if (d == directory) == same {
					chosen = append(chosen, d)
				}
			}
			return chosen
		}
	}
	return divide(true), divide(false)
}

// specAnswers is the answer of each row, by the specification's table.
var specAnswers = map[string]string{
	"resource-mismatch":        "claim-resource-mismatch",
	"fresh":                    "fenced",
	"unarmed-lease-present":    "legacy-lease-present",
	"unarmed":                  "fenced",
	"closed-lease-present":     "legacy-lease-present",
	"closed":                   "fenced",
	"owner-other-host":         "owner-other-host",
	"owner-live":               "owner-live",
	"owner-uncertain":          "owner-uncertain",
	"owner-dead-attributed":    "fenced",
	"owner-dead-lease-present": "lease-unattributed",
	"owner-dead":               "fenced",
}

func TestEachRowOfTheAdmissionTable(t *testing.T) {
	cells := admissionCells(t)
	if len(Rows()) != len(specAnswers) {
		t.Errorf("%d rows, want %d", len(Rows()), len(specAnswers))
	}
	total := 0
	for _, row := range Rows() {
		t.Run(row.Name, func(t *testing.T) {
			if len(cells[row.Name]) == 0 {
				t.Fatal("no cell shows this row")
			}
			if row.Answer != specAnswers[row.Name] {
				t.Errorf("answers %s, want %s", row.Answer, specAnswers[row.Name])
			}
			for _, cell := range cells[row.Name] {
				total++
				if got := cell.s.row(); got != row {
					t.Errorf("%s: row %s", cell.name, got.Name)
				}
				if complaint := cell.answered(row); complaint != "" {
					t.Errorf("%s: %s", cell.name, complaint)
				}
			}
		})
	}
	// Each situation belongs to one row: none was left out, and none counted twice.
	if want := len(everyWord) * 4 * 2 * 2 * (2*len(validClaims()) + 1); total != want {
		t.Errorf("%d cells, want %d", total, want)
	}
	t.Logf("%d situations", total)
}

// answered says what is wrong with what the cell is answered; empty when nothing is.
func (cell admissionCell) answered(row Row) string {
	c, refusal := admit(cell.req, cell.s, specWrite)
	was, want := cell.s.Claim, row.Answer
	if want == "fenced" && was != nil && cell.req.Profile == "" && (was.SchemaVersion == 1 || was.Selected.Profile != "") {
		want = "profile-required"
	}
	if want != "fenced" {
		if c != nil || refusal == nil || refusal.Code != want || refusal.Claim != was {
			return fmt.Sprintf("%+v, %+v; want %s with the claim", c, refusal, want)
		}
		return ""
	}
	if refusal != nil {
		return refusal.Error()
	}
	expected := &Claim{
		SchemaVersion: 3, Resource: specResource, Selected: Selected{N: "s1", Directory: cell.s.Directory, Profile: cell.req.Profile},
		State: Fenced, Owner: cell.req.Owner, Generation: specWrite.Generation, Lease: NeverHeld, WrittenAt: specWrite.At,
		FirstParticipation: First{At: specWrite.At, Generation: specWrite.Generation, From: "unarmed-existing"},
	}
	if cell.req.Profile != "" {
		expected.SchemaVersion = 2
	}
	if row.Name == "fresh" {
		expected.FirstParticipation.From = "fresh"
	}
	if was != nil {
		expected.FirstParticipation = was.FirstParticipation
		if was.State != Closed {
			expected.ReclaimedFrom = &Reclaimed{was.Generation, was.State, was.Owner, was.Lease}
		}
	}
	if !reflect.DeepEqual(c, expected) {
		return fmt.Sprintf("writes\n%s, want\n%s", c.Encode(), expected.Encode())
	}
	if _, err := Decode(c.Encode()); err != nil {
		return fmt.Sprintf("%v: %s", err, c.Encode())
	}
	return ""
}
