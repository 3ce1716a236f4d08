package fence

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// What the claims of these tests say.
const (
	specResource  = "/data/sessions/s1"
	specProfile   = "/home/u/.agent"
	specDirectory = specProfile + "/experimental/durable-sessions/0123456789abcdef01234567/s1"
	specAlias     = specProfile + "/experimental/durable-sessions/other/s1"
	specPlain     = "/home/u/s1"
	specTime      = "2026-11-30T05:03:22.123Z"
	specGarden    = "20261130T050322-0a1b2c"
)

// specEndings is the table of the specification: state, lease and end.storage. "3:" is what only schema 3 has.
const specEndings = `
reserved, fenced        | never-held                | none
leased, storage-open    | held                      | none
closed                  | released                  | closed, never-opened
closed                  | never-held                | never-opened
close-failed            | released, failed, unknown | failed, unknown
close-failed            | failed, unknown           | closed, never-opened
3: leased, storage-open | never-held                | none
3: closed               | never-held                | closed
3: close-failed         | never-held                | failed, unknown
`

var (
	specStates   = []string{"reserved", "fenced", "leased", "storage-open", "closed", "close-failed"}
	specLeases   = []string{"never-held", "held", "released", "failed", "unknown"}
	specStorages = []string{"none", "closed", "never-opened", "failed", "unknown"}
)

// specRow is one combination of a claim: storage is "none" where there is no end.
type specRow struct {
	schema                int
	state, lease, storage string
}

func (r specRow) String() string {
	return fmt.Sprintf("schema %d %s %s %s", r.schema, r.state, r.lease, r.storage)
}

// possible reports whether the specification's table has the row; schema 1 knows no reserved.
func (r specRow) possible() bool {
	if r.schema == 1 && r.state == "reserved" {
		return false
	}
	for line := range strings.Lines(strings.TrimSpace(specEndings)) {
		plain := strings.HasPrefix(line, "3: ")
		cells := strings.Split(strings.TrimPrefix(strings.TrimSpace(line), "3: "), "|")
		has := func(i int, word string) bool {
			return slices.Contains(strings.Split(strings.TrimSpace(cells[i]), ", "), word)
		}
		if (!plain || r.schema == 3) && has(0, r.state) && has(1, r.lease) && has(2, r.storage) {
			return true
		}
	}
	return false
}

// everyRow is every combination of the words, possible or not.
func everyRow() (rows []specRow) {
	for schema := 1; schema <= 3; schema++ {
		for _, state := range specStates {
			for _, lease := range specLeases {
				for _, storage := range specStorages {
					rows = append(rows, specRow{schema, state, lease, storage})
				}
			}
		}
	}
	return rows
}

func possibleRows() []specRow {
	return slices.DeleteFunc(everyRow(), func(r specRow) bool { return !r.possible() })
}

// claim is the row's claim as the other implementation would write it, in the specification's order.
func (r specRow) claim() jsObject {
	o := js("schemaVersion", r.schema, "resource", specResource, "selected", r.selected(), "state", r.state, "owner", jsOwner(4001),
		"generation", jsGeneration("a"), "firstParticipation", js("at", specTime, "generation", jsGeneration("b"), "from", "fresh"))
	if r.state == "reserved" {
		o = append(o, jsMember{"reservation", r.reservation(specRow{r.schema, "closed", "released", "closed"}, "absent")})
	}
	o = append(o, jsMember{"lease", r.lease})
	if end := r.end(); end != nil {
		o = append(o, jsMember{"end", end})
	}
	return append(o, jsMember{"writtenAt", specTime})
}

func (r specRow) selected() jsObject {
	if r.schema == 2 {
		return js("n", "s1", "directory", specDirectory, "profile", specProfile)
	}
	return js("n", "s1", "directory", specPlain)
}

func (r specRow) end() jsObject {
	if r.storage == "none" {
		return nil
	}
	return js("at", specTime, "storage", r.storage, "lease", r.lease)
}

// reservation is one that stands on the donor's row.
func (r specRow) reservation(donor specRow, nativeLease string) jsObject {
	from := js("generation", jsGeneration("d"), "state", donor.state, "owner", jsOwner(4002), "lease", donor.lease)
	if end := donor.end(); end != nil {
		from = append(from, jsMember{"end", end})
	}
	from = append(from, jsMember{"selected", r.selected()})
	o := js("gardenId", specGarden, "n", "s1", "cwd", "/home/u/work", "resource", specResource)
	if r.schema == 2 {
		o = append(o, jsMember{"profile", specProfile})
	}
	return append(o, js("attachIncarnation", "5c1e7f7e-9f3b-4a43-8a4b-0e6d8f1f2a3b", "nativeLease", nativeLease, "from", from)...)
}

// reservedOn is a reserved claim that stands on the donor's row.
func reservedOn(donor specRow, nativeLease string) jsObject {
	r := specRow{donor.schema, "reserved", "never-held", "none"}
	return r.claim().with("reservation", r.reservation(donor, nativeLease))
}

func jsOwner(pid int) jsObject {
	return js("pid", pid, "startKey", "linux:123456", "hostname", "vm")
}

func jsGeneration(digit string) string { return strings.Repeat(digit, 32) }

// before puts a member where the specification has it.
func (o jsObject) before(next, name string, value any) jsObject {
	out := o.clone()
	return slices.Insert(out, out.index(next), jsMember{name, value})
}

func jsReclaimed(state, lease string) jsObject {
	return js("generation", jsGeneration("e"), "state", state, "owner", jsOwner(4003), "leaseOutcome", lease)
}

func jsAdopted() jsObject { return js("generation", jsGeneration("f"), "owner", jsOwner(4004)) }

// specClaim is a valid claim and its name.
type specClaim struct {
	name string
	row  specRow
	doc  jsObject
}

// validClaims are the claims of every possible row, bare and with all that may ride on it. They are not changed.
var validClaims = sync.OnceValue(func() (all []specClaim) {
	for _, r := range possibleRows() {
		add := func(what string, doc jsObject) { all = append(all, specClaim{r.String() + what, r, doc}) }
		if r.state == "reserved" {
			for _, donor := range possibleRows() {
				if donor.schema != r.schema || donor.state == "reserved" {
					continue
				}
				add(" on "+donor.String(), reservedOn(donor, "absent"))
				if donor.lease == "held" || donor.lease == "unknown" {
					add(" attributed on "+donor.String(), reservedOn(donor, "present-attributed"))
				}
			}
			continue
		}
		doc := r.claim()
		add("", doc)
		add(" reclaimed", doc.before("lease", "reclaimedFrom", jsReclaimed("storage-open", "held")))
		if r.schema >= 2 {
			add(" adopted", doc.before("lease", "adoptedFrom", jsAdopted()))
		}
		if r.storage != "none" {
			add(" with a cause", doc.with("end.cause", "EIO: <close> failed & more"))
		}
		if r.storage != "none" && r.storage != "never-opened" {
			add(" with an uncleared environment", doc.with("end.envCleanup", "failed").with("end.cause", "x"))
		}
	}
	return all
})

// read is the claim of a document that must be valid.
func (o jsObject) read(t testing.TB) *Claim {
	t.Helper()
	c, err := Decode([]byte(o.stringify()))
	if err != nil {
		t.Fatalf("%v: %s", err, o.stringify())
	}
	return c
}
