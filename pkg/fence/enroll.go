package fence

import (
	"context"
	"path/filepath"

	"holdfast/pkg/procid"
)

// Enrollment asks for a citizen's record and location to name the directory that a ticket's owner has.
type Enrollment struct {
	Garden Garden
	CWD    string // absolute; where the citizen works
	Ticket string // path
}

// Enrolled is a citizen whose record and location name its directory.
type Enrolled struct {
	Garden            Garden
	Resource          string
	AttachIncarnation string
	Claim             *Claim // unchanged
}

// Enroll binds a garden to the directory that the ticket's owner has open, under a new incarnation: record first, location
// second. A kill between the two is binding-mismatch for everybody, until somebody enrols again. Errors: *Refusal,
// *regfile.Error.
func Enroll(ctx context.Context, e Enrollment, opts Options) (*Enrolled, error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	out := &Enrolled{Garden: e.Garden}
	err := e.Garden.arm(ctx, "enroll", opts, func(*armed) error {
		return withTicket(ctx, e.Ticket, "enroll", opts, func(tx *transaction, t *ticketFile) error {
			content, _, err := t.read()
			if err != nil {
				return err
			}
			s, _, err := tx.standing(content)
			if err != nil {
				return err
			}
			if r := e.decide(s); r != nil {
				return tx.located(r)
			}
			out.Resource, out.Claim = tx.resource, s.Claim
			out.AttachIncarnation = tx.opts.NewID()
			return tx.bind(e, s.Claim, out.AttachIncarnation)
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (e Enrollment) check() error {
	if err := e.Garden.check(); err != nil {
		return err
	}
	if !filepath.IsAbs(e.CWD) || filepath.Clean(e.CWD) != e.CWD {
		return &Refusal{Code: CodeReservationInvalid, How: "the cwd " + e.CWD + " is no absolute, clean path"}
	}
	return nil
}

// decide refuses unless the ticket's owner lives and has the directory, and the cwd is the one that its layout is for.
func (e Enrollment) decide(s standing) *Refusal {
	if r := s.ours(); r != nil {
		return r
	}
	c := s.Claim
	switch {
	case c.State == Reserved:
		return &Refusal{Code: CodeTransitionInvalid, Claim: c, How: "it is reserved: only an owner that has the directory enrols"}
	case s.Verdict.Word != procid.Live:
		return &Refusal{Code: CodeTransitionInvalid, Claim: c, Verdict: &s.Verdict, How: "its owner is not known to live: " + s.Verdict.Reason}
	case c.SchemaVersion == SchemaDurable && layout(c.Selected.Profile, e.CWD, c.Selected.N) != c.Selected.Directory:
		return &Refusal{Code: CodeLayoutMismatch, Claim: c, How: "the profile keeps the sessions of " + e.CWD + " elsewhere: " + layout(c.Selected.Profile, e.CWD, c.Selected.N)}
	}
	return nil
}

// bind writes the record, then the location. Both are staged before either is published, so that what cannot be written, for
// want of space or because something else has the name, changes neither.
func (tx *transaction) bind(e Enrollment, c *Claim, incarnation string) error {
	r, err := e.record(c)
	if err != nil {
		return err
	}
	r.AttachIncarnation = incarnation
	record, err := stage(e.Garden.recordPath(), r.Encode())
	if err != nil {
		return err
	}
	defer record.discard()
	location, err := stage(e.Garden.locationPath(), (&Location{
		SchemaVersion: 1, GardenID: e.Garden.ID, AttachIncarnation: incarnation, NativeDirectory: tx.resource,
		OwnerPID: c.Owner.PID, OwnerStartKey: c.Owner.StartKey, WrittenAt: FormatTime(tx.opts.Now()),
	}).encode())
	if err != nil {
		return err
	}
	defer location.discard()
	if err := record.publish(); err != nil {
		return err
	}
	tx.iv.at("record")
	return location.publish()
}

// record is the citizen's record: as it is, when it agrees, or a new one.
func (e Enrollment) record(c *Claim) (*Record, error) {
	snap, err := get(e.Garden.recordPath())
	if err != nil {
		return nil, err
	}
	if snap == nil {
		return &Record{GardenID: e.Garden.ID, NativeSessionID: c.Selected.N, CWD: e.CWD}, nil
	}
	r, err := DecodeRecord(snap.Bytes)
	if err != nil {
		return nil, unboundBy(e.Garden.recordPath(), err)
	}
	switch {
	case r.GardenID != e.Garden.ID:
		return nil, unbound(e.Garden.recordPath(), "names another garden, "+r.GardenID)
	case r.NativeSessionID != c.Selected.N:
		return nil, &Refusal{Code: CodeEnrollMismatch, Path: e.Garden.recordPath(), Claim: c, How: "the record is of session " + r.NativeSessionID + ", not of " + c.Selected.N}
	case r.CWD != e.CWD:
		return nil, &Refusal{Code: CodeEnrollMismatch, Path: e.Garden.recordPath(), Claim: c, How: "the record's cwd is " + r.CWD + ", not " + e.CWD}
	}
	return r, nil
}
