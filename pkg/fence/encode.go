package fence

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"holdfast/pkg/procid"
	"holdfast/pkg/strictjson"
)

// Encode returns the file's bytes: tab-indented JSON with a final newline, as the other implementation writes it. It is the
// form that encoding by reflection gives, at a fraction of its time: every read of a claim compares with it.
func (c *Claim) Encode() []byte {
	e := &encoder{b: make([]byte, 0, 1024)}
	e.object(func() {
		e.number("schemaVersion", c.SchemaVersion)
		e.text("resource", c.Resource)
		e.selected("selected", c.Selected)
		e.text("state", string(c.State))
		e.owner("owner", c.Owner)
		e.text("generation", c.Generation)
		e.member("firstParticipation", func() {
			e.text("at", c.FirstParticipation.At)
			e.text("generation", c.FirstParticipation.Generation)
			e.text("from", c.FirstParticipation.From)
		})
		e.provenance(c)
		e.text("lease", string(c.Lease))
		e.end(c.End)
		e.text("writtenAt", c.WrittenAt)
	})
	return append(e.b, '\n')
}

// encoder writes indented JSON.
type encoder struct {
	b     []byte
	depth int
	more  bool // the object that is being written has a member already
}

func (e *encoder) object(members func()) {
	e.b = append(e.b, '{')
	e.depth++
	e.more = false
	members()
	e.depth--
	e.line()
	e.b = append(e.b, '}')
	e.more = true
}

func (e *encoder) line() {
	e.b = append(e.b, '\n')
	for range e.depth {
		e.b = append(e.b, '\t')
	}
}

func (e *encoder) name(name string) {
	if e.more {
		e.b = append(e.b, ',')
	}
	e.line()
	e.b = append(e.b, '"')
	e.b = append(e.b, name...)
	e.b = append(e.b, `": `...)
	e.more = true
}

func (e *encoder) member(name string, members func()) {
	e.name(name)
	e.object(members)
}

func (e *encoder) number(name string, n int) {
	e.name(name)
	e.b = strconv.AppendInt(e.b, int64(n), 10)
}

// text writes a string; what is not UTF-8 becomes U+FFFD.
func (e *encoder) text(name, s string) {
	e.name(name)
	e.b, _ = jsontext.AppendQuote(e.b, s)
}

func (e *encoder) optional(name, s string) {
	if s != "" {
		e.text(name, s)
	}
}

func (e *encoder) selected(name string, s Selected) {
	e.member(name, func() {
		e.text("n", s.N)
		e.text("directory", s.Directory)
		e.optional("profile", s.Profile)
	})
}

func (e *encoder) owner(name string, o procid.Identity) {
	e.member(name, func() {
		e.number("pid", o.PID)
		e.text("startKey", o.StartKey)
		e.text("hostname", o.Hostname)
	})
}

// provenance is what a claim comes from.
func (e *encoder) provenance(c *Claim) {
	if r := c.ReclaimedFrom; r != nil {
		e.member("reclaimedFrom", func() {
			e.text("generation", r.Generation)
			e.text("state", string(r.State))
			e.owner("owner", r.Owner)
			e.text("leaseOutcome", string(r.LeaseOutcome))
		})
	}
	if r := c.Reservation; r != nil {
		e.member("reservation", func() { e.reservation(r) })
	}
	if a := c.AdoptedFrom; a != nil {
		e.member("adoptedFrom", func() {
			e.text("generation", a.Generation)
			e.owner("owner", a.Owner)
		})
	}
}

func (e *encoder) reservation(r *Reservation) {
	e.text("gardenId", r.GardenID)
	e.text("n", r.N)
	e.text("cwd", r.CWD)
	e.text("resource", r.Resource)
	e.optional("profile", r.Profile)
	e.text("attachIncarnation", r.AttachIncarnation)
	e.text("nativeLease", r.NativeLease)
	e.member("from", func() {
		e.text("generation", r.From.Generation)
		e.text("state", string(r.From.State))
		e.owner("owner", r.From.Owner)
		e.text("lease", string(r.From.Lease))
		e.end(r.From.End)
		e.selected("selected", r.From.Selected)
	})
}

func (e *encoder) end(end *End) {
	if end == nil {
		return
	}
	e.member("end", func() {
		e.text("at", end.At)
		e.text("storage", string(end.Storage))
		e.text("lease", string(end.Lease))
		e.optional("envCleanup", end.EnvCleanup)
		if end.Cause != nil {
			e.name("cause")
			e.b = strictjson.AppendText(e.b, *end.Cause)
		}
	})
}
