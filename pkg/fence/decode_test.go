package fence

import (
	"errors"
	"fmt"
	"testing"

	"holdfast/pkg/strictjson"
)

// notRefused says what is wrong when a text is not refused with one of the errors that Decode promises; empty when it is.
func notRefused(text string) string {
	c, err := Decode([]byte(text))
	var fault *strictjson.Error
	switch {
	case err == nil:
		return fmt.Sprintf("is read as %s at %s: %s", c.State, c.Generation, text)
	case c != nil:
		return fmt.Sprintf("refused, and yet %+v", c)
	case !errors.As(err, &fault) && !errors.Is(err, ErrSchemaNewer):
		return fmt.Sprintf("%T: %v", err, err)
	}
	return ""
}

// refuseDecode fails unless the text is refused.
func refuseDecode(t *testing.T, text string) {
	t.Helper()
	if complaint := notRefused(text); complaint != "" {
		t.Error(complaint)
	}
}

func TestDecodeReadsExactlyTheTable(t *testing.T) {
	possible := 0
	for _, r := range everyRow() {
		t.Run(r.String(), func(t *testing.T) {
			text := r.claim().stringify()
			if !r.possible() {
				refuseDecode(t, text)
				return
			}
			possible++
			c, err := Decode([]byte(text))
			if err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			if c.SchemaVersion != r.schema || string(c.State) != r.state || string(c.Lease) != r.lease ||
				(c.End == nil) != (r.storage == "none") || c.End != nil && string(c.End.Storage) != r.storage {
				t.Errorf("%+v", c)
			}
		})
	}
	// 2+2+2+1+6+4 combinations, one less in schema 1, five more in schema 3.
	if possible != 16+17+22 {
		t.Errorf("%d combinations are possible", possible)
	}
}

func TestAReservationsDonorObeysTheTable(t *testing.T) {
	for _, donor := range everyRow() {
		for _, native := range []string{"absent", "present-attributed"} {
			if donor.schema == 1 {
				continue
			}
			t.Run(fmt.Sprint(donor, " ", native), func(t *testing.T) {
				text := reservedOn(donor, native).stringify()
				if donor.possible() && donor.state != "reserved" && (native == "absent" || donor.lease == "held" || donor.lease == "unknown") {
					if _, err := Decode([]byte(text)); err != nil {
						t.Errorf("%v: %s", err, text)
					}
					return
				}
				refuseDecode(t, text)
			})
		}
	}
}

func TestAnEndRepeatsItsLeaseAndNeverOpenedHasNoEnvironment(t *testing.T) {
	for _, r := range possibleRows() {
		if r.storage == "none" {
			continue
		}
		for _, lease := range specLeases {
			if lease != r.lease {
				t.Run(r.String()+" end.lease "+lease, func(t *testing.T) {
					refuseDecode(t, r.claim().with("end.lease", lease).stringify())
				})
			}
		}
		t.Run(r.String()+" envCleanup", func(t *testing.T) {
			text := r.claim().with("end.envCleanup", "failed").stringify()
			if r.storage == "never-opened" {
				refuseDecode(t, text)
			} else if _, err := Decode([]byte(text)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestEveryValidClaimIsReadAndWrittenByteForByte(t *testing.T) {
	for _, v := range validClaims() {
		text := v.doc.stringify()
		c, err := Decode([]byte(text))
		if err != nil {
			t.Errorf("%s: %v: %s", v.name, err, text)
			continue
		}
		if got := string(c.Encode()); got != text {
			t.Errorf("%s: written\n%s\nof\n%s", v.name, got, text)
		}
	}
}

// A claim that is about to be written is held to the same table as one that is read.
func TestWritableIsExactlyTheTable(t *testing.T) {
	base := map[int]*Claim{}
	for _, r := range everyRow() {
		if base[r.schema] == nil {
			base[r.schema] = specRow{r.schema, "fenced", "never-held", "none"}.claim().read(t)
		}
		c := *base[r.schema]
		c.State, c.Lease = State(r.state), Lease(r.lease)
		if r.storage != "none" {
			c.End = &End{At: specTime, Storage: Storage(r.storage), Lease: c.Lease}
		}
		if r.state == "reserved" && r.schema > 1 {
			c.Reservation = specRow{r.schema, "reserved", "never-held", "none"}.claim().read(t).Reservation
		}
		refusal := c.writable()
		if ok := refusal == nil; ok != r.possible() {
			t.Errorf("%s: %v", r, refusal)
		}
		if refusal != nil && refusal.Code != CodeTransitionInvalid {
			t.Errorf("%s: %s", r, refusal.Code)
		}
	}
}

// A schema to come is told from damage, whatever its members are, as long as it is an object that says so.
func TestAClaimOfASchemaToComeIsNoDamage(t *testing.T) {
	base := specRow{3, "fenced", "never-held", "none"}.claim()
	for name, o := range map[string]jsObject{
		"the members of today": base.with("schemaVersion", 4),
		"a member more":        base.with("schemaVersion", 4).with("lanes", 2),
		"none of today's":      js("schemaVersion", 1000),
	} {
		if _, err := Decode([]byte(o.stringify())); !errors.Is(err, ErrSchemaNewer) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range map[string]string{
		"schema 0":      base.with("schemaVersion", 0).stringify(),
		"schema -1":     base.with("schemaVersion", -1).stringify(),
		"half of one":   base.with("schemaVersion", 4).stringify()[:40],
		"two schemas":   base.with("schemaVersion", 4).twice("schemaVersion").stringify(),
		"a text":        base.with("schemaVersion", "4").stringify(),
		"a member more": base.with("lanes", 2).stringify(),
	} {
		if _, err := Decode([]byte(text)); err == nil || errors.Is(err, ErrSchemaNewer) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
