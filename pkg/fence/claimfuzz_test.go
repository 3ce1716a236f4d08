package fence

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"holdfast/pkg/strictjson"
)

// looseRow is a state, lease and end as any JSON reader sees them.
type looseRow struct {
	SchemaVersion int
	State, Lease  string
	End           *struct{ Storage, Lease string }
	Reservation   *struct {
		NativeLease string
		From        looseDonor
	}
}

type looseDonor struct {
	State, Lease string
	End          *struct{ Storage, Lease string }
}

func (d looseDonor) row(schema int) specRow {
	r := specRow{schema, d.State, d.Lease, "none"}
	if d.End != nil {
		r.storage = d.End.Storage
	}
	return r
}

// FuzzDecode: whatever is read is written again as a claim that reads the same, and the specification's table has its row.
func FuzzDecode(f *testing.F) {
	for _, v := range validClaims() {
		f.Add([]byte(v.doc.stringify()))
	}
	for i, bad := range malformed() {
		if i%13 == 0 { // enough of each kind, and a plain run stays short
			f.Add([]byte(bad.text))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Decode(text)
		if err != nil {
			var fault *strictjson.Error
			if c != nil || !errors.As(err, &fault) && !errors.Is(err, ErrSchemaNewer) {
				t.Fatalf("%+v, %T %v", c, err, err)
			}
			return
		}
		written := c.Encode()
		again, err := Decode(written)
		if err != nil {
			t.Fatalf("%v: %s", err, written)
		}
		if !bytes.Equal(again.Encode(), written) {
			t.Fatalf("%s\nis written again as\n%s", written, again.Encode())
		}
		tableAgrees(t, c, text)
		if c.writable() != nil {
			t.Fatal("is read and could not be written")
		}
	})
}

// tableAgrees fails unless the specification's table has the rows that another reader finds in the text.
func tableAgrees(t *testing.T, c *Claim, text []byte) {
	var loose looseRow
	if err := json.Unmarshal(text, &loose); err != nil {
		t.Fatal("encoding/json refuses it:", err)
	}
	r := looseDonor{loose.State, loose.Lease, loose.End}.row(loose.SchemaVersion)
	if !r.possible() || loose.End != nil && loose.End.Lease != loose.Lease {
		t.Fatalf("%s is read: %s", r, text)
	}
	if string(c.State) != r.state || string(c.Lease) != r.lease || (c.End != nil) != (loose.End != nil) || c.SchemaVersion != r.schema {
		t.Fatalf("%s is read as %s %s", r, c.State, c.Lease)
	}
	if (loose.Reservation != nil) != (r.state == "reserved") {
		t.Fatalf("%s and a reservation: %v", r, loose.Reservation != nil)
	}
	if loose.Reservation == nil {
		return
	}
	from := loose.Reservation.From
	held := from.Lease == "held" || from.Lease == "unknown"
	if donor := from.row(r.schema); !donor.possible() || donor.state == "reserved" || loose.Reservation.NativeLease == "present-attributed" && !held {
		t.Fatalf("a reservation on %s is read: %s", donor, text)
	}
}

func TestATicketIsReadByItsExactMembers(t *testing.T) {
	whole := js("resource", specResource, "generation", jsGeneration("a"), "pending", jsGeneration("b"), "storageOpenAttempted", jsRaw("true"))
	for name, o := range map[string]jsObject{
		"whole":                    whole,
		"nothing pending":          whole.without("pending"),
		"nothing attempted":        whole.with("storageOpenAttempted", jsRaw("false")),
		"before the first writing": whole.without("generation"),
	} {
		if ticket, err := DecodeTicket([]byte(o.stringify())); err != nil || ticket.Resource != specResource {
			t.Errorf("%s: %+v, %v", name, ticket, err)
		}
	}
	for name, text := range map[string]string{
		"no resource":           whole.without("resource").stringify(),
		"a relative resource":   whole.with("resource", "s1").stringify(),
		"no generation at all":  whole.without("generation").without("pending").stringify(),
		"an empty generation":   whole.with("generation", "").stringify(),
		"an empty pending":      whole.with("pending", "").stringify(),
		"a null pending":        whole.with("pending", jsRaw("null")).stringify(),
		"a generation in caps":  whole.with("generation", strings.Repeat("A", 32)).stringify(),
		"31 digits pending":     whole.with("pending", jsGeneration("b")[1:]).stringify(),
		"33 digits":             whole.with("generation", jsGeneration("a")+"a").stringify(),
		"no attempt said":       whole.without("storageOpenAttempted").stringify(),
		"a null attempt":        whole.with("storageOpenAttempted", jsRaw("null")).stringify(),
		"an attempt of words":   whole.with("storageOpenAttempted", "true").stringify(),
		"a member more":         whole.with("extra", 1).stringify(),
		"a member twice":        whole.twice("generation").stringify(),
		"something after it":    whole.stringify() + "{}",
		"nothing":               "",
		"half of it":            whole.stringify()[:60],
		"a claim":               validClaims()[0].doc.stringify(),
		"a name in other words": whole.renamed("resource", "Resource").stringify(),
	} {
		var fault *strictjson.Error
		if ticket, err := DecodeTicket([]byte(text)); !errors.As(err, &fault) || ticket != (Ticket{}) {
			t.Errorf("%s: %+v, %v", name, ticket, err)
		}
	}
}

// FuzzTicket: whatever is read is written again as a ticket that reads the same, and names what it says and nothing else.
func FuzzTicket(f *testing.F) {
	a, b := jsGeneration("a"), jsGeneration("b")
	for _, t := range []Ticket{
		{Resource: specResource, Pending: a}, {Resource: specResource, Generation: a}, {Resource: "/", Generation: a, Pending: b, StorageOpenAttempted: true},
	} {
		f.Add(encodeTicket(t))
	}
	for _, text := range []string{"", "{}", "null", `{"resource":"/s","generation":"` + a + `"}`, `{"resource":"s","generation":null}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		ticket, err := DecodeTicket(text)
		if err != nil {
			var fault *strictjson.Error
			if ticket != (Ticket{}) || !errors.As(err, &fault) {
				t.Fatalf("%+v, %v", ticket, err)
			}
			return
		}
		again, err := DecodeTicket(encodeTicket(ticket))
		if err != nil || again != ticket {
			t.Fatalf("%+v reads again as %+v, %v", ticket, again, err)
		}
		var members map[string]any
		if err := json.Unmarshal(text, &members); err != nil {
			t.Fatal(err)
		}
		if attempted, ok := members["storageOpenAttempted"].(bool); !ok || attempted != ticket.StorageOpenAttempted {
			t.Fatalf("%s says %v", text, ticket.StorageOpenAttempted)
		}
		if ticket.names("") || !ticket.names(ticket.last()) {
			t.Fatalf("%+v", ticket)
		}
	})
}
