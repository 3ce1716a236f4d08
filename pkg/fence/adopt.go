package fence

import (
	"context"
	"errors"
	"path/filepath"
	"unicode/utf8"

	"holdfast/pkg/procid"
	"holdfast/pkg/regfile"
)

// Adoption is a request for exactly one reservation. It never falls back to an ordinary admission.
type Adoption struct {
	Request
	Directory  string // as the child selects it
	Garden     Garden
	Generation string // of the reservation
}

// Adopt takes the directory over from the parent that reserved it for this child: record-arm lock, then the directory's
// transaction. The Fence is for what follows, and is the caller's to close. Errors: *Refusal, *regfile.Error. A refusal
// writes nothing.
func Adopt(ctx context.Context, req Adoption, opts Options) (*Fence, *Admission, error) {
	opts.setDefaults()
	if err := req.complete(); err != nil {
		return nil, nil, err
	}
	var f *Fence
	a := &Admission{Ticket: req.Ticket}
	err := req.Garden.arm(ctx, "adopt", opts, func(arm *armed) error {
		b, err := req.Garden.bound()
		if err != nil {
			return err
		}
		if f, err = openLocated(b.Location, opts); err != nil {
			return err
		}
		f.selected = req.Directory
		return f.adopt(ctx, req, b, a, arm)
	})
	if a.Claim == nil && f != nil {
		f.Close()
		f = nil
	}
	return f, a, err
}

// adopt makes the ticket and adopts inside the transaction.
func (f *Fence) adopt(ctx context.Context, req Adoption, b binding, a *Admission, arm *armed) error {
	return f.ticketed(req.Ticket, a, func(w write, settle func() []string) error {
		return f.transact(ctx, "adopt", func(tx *transaction) error {
			err := tx.adoptInside(req, b, a, w)
			arm.written = tx.written
			if err == nil {
				a.Warnings = settle()
			}
			return err
		})
	})
}

func (tx *transaction) adoptInside(req Adoption, b binding, a *Admission, w write) error {
	prior, err := tx.read()
	if err != nil {
		return err
	}
	in := adopting{Resource: tx.resource, Claim: prior.Claim, binding: b}
	c, refusal, err := in.decide(req, w)
	if err != nil {
		return err
	}
	if refusal != nil {
		if refusal.Code == CodeAdoptLeaseAppeared {
			refusal.Native, _ = nativeLeases(req.Directory, tx.resource)
		}
		return tx.located(refusal)
	}
	return tx.admitAs(a, req.Request, prior, c)
}

// complete refuses what can never be adopted, and cleans the directory's path.
func (req *Adoption) complete() error {
	if err := req.Garden.check(); err != nil {
		return err
	}
	if !ValidGeneration(req.Generation) {
		return &Refusal{Code: CodeReservationInvalid, How: "the generation " + req.Generation + " is none: it is 32 lower-case hex digits"}
	}
	abs, err := filepath.Abs(req.Directory)
	if err != nil {
		return regfile.IOError("resolve", req.Directory, bare(err))
	}
	req.Directory = abs
	if req.Session == "" {
		req.Session = filepath.Base(abs)
	}
	if !utf8.ValidString(abs) {
		return invalid(abs, errors.New("the path is not UTF-8"))
	}
	// Whether the profile fits is decided on the reservation.
	if how := incomplete(req.Request, ""); how != "" {
		return &Refusal{Code: CodeAdmissionInvalid, Path: abs, How: how}
	}
	return nil
}

// adopting is what an adoption is decided on.
type adopting struct {
	Resource string
	Claim    *Claim
	binding
}

// decide answers in the order that the protocol gives; what has to be looked up is looked up where the order has it. The
// error is a *regfile.Error.
func (in adopting) decide(req Adoption, w write) (*Claim, *Refusal, error) {
	c := in.Claim
	no := func(code, how string) *Refusal {
		return &Refusal{Code: code, Claim: c, How: how, Generation: req.Generation}
	}
	switch {
	case c == nil:
		return nil, no(CodeAdoptNotReserved, "there is no claim, so there is no reservation"), nil
	case c.Resource != in.Resource:
		return nil, refuse(CodeResourceMismatch, c, nil), nil
	case c.State != Reserved:
		return nil, no(CodeAdoptNotReserved, "it is "+string(c.State)+", not reserved"), nil
	case c.Generation != req.Generation:
		return nil, no(CodeAdoptGenerationMismatch, "it is reserved at generation "+c.Generation+", not at "+req.Generation), nil
	case in.Record.AttachIncarnation != c.Reservation.AttachIncarnation:
		return nil, no(CodeAdoptBindingChanged, "the citizen was enrolled again since it was reserved"), nil
	}
	real, err := filepath.EvalSymlinks(req.Directory)
	if err != nil {
		return nil, nil, invalid(req.Directory, err)
	}
	if r := in.mismatch(req, real); r != nil {
		return nil, r, nil
	}
	leases, err := nativeLeases(req.Directory, in.Resource)
	if err != nil {
		return nil, nil, err
	}
	if c.Reservation.NativeLease == leaseAbsent && len(leases) > 0 {
		return nil, no(CodeAdoptLeaseAppeared, "a native lease has appeared since it was reserved"), nil
	}
	next := &Claim{
		SchemaVersion: c.SchemaVersion, Resource: c.Resource, Selected: c.Selected, State: Fenced, Owner: req.Owner,
		Generation: w.Generation, FirstParticipation: c.FirstParticipation, Lease: NeverHeld, WrittenAt: w.At,
		AdoptedFrom: &AdoptedRow{Generation: c.Generation, Owner: c.Owner},
	}
	return next, next.writable(), nil
}

// mismatch compares the child's request and the record with the reservation.
func (in adopting) mismatch(req Adoption, real string) *Refusal {
	c, r := in.Claim, in.Claim.Reservation
	no := func(code, how string) *Refusal { return &Refusal{Code: code, Claim: c, How: how} }
	switch {
	case req.Garden.ID != r.GardenID:
		return no(CodeAdoptReservationMismatch, "it is reserved for garden "+r.GardenID)
	case in.Record.NativeSessionID != r.N:
		return no(CodeAdoptReservationMismatch, "it is reserved for session "+r.N+", and the record is of "+in.Record.NativeSessionID)
	case in.Record.CWD != r.CWD:
		return no(CodeAdoptReservationMismatch, "it is reserved for cwd "+r.CWD+", and the record's is "+in.Record.CWD)
	case real != r.Resource:
		return no(CodeAdoptReservationMismatch, "it is reserved as "+r.Resource+", and "+req.Directory+" leads to "+real)
	case req.Profile != r.Profile:
		return no(CodeAdoptProfileMismatch, "it is reserved with "+profileText(r.Profile)+", and asked for with "+profileText(req.Profile))
	case req.Directory != c.Selected.Directory:
		return no(CodeAdoptProfileMismatch, "it is reserved as "+c.Selected.Directory+", not as "+req.Directory)
	case req.Session != r.N:
		return no(CodeAdoptProfileMismatch, "it is reserved for session "+r.N+", not for "+req.Session)
	case c.SchemaVersion == SchemaDurable && layout(r.Profile, in.Record.CWD, r.N) != req.Directory:
		return no(CodeAdoptProfileMismatch, "the profile keeps the sessions of "+in.Record.CWD+" elsewhere: "+layout(r.Profile, in.Record.CWD, r.N))
	case !sameHost(c.Owner, req.Owner):
		return refuse(CodeOwnerOtherHost, c, otherHost(c))
	}
	return nil
}

// otherHost is the verdict about a parent on another host, whose liveness is not asked.
func otherHost(c *Claim) *procid.Verdict {
	return &procid.Verdict{Word: procid.OtherHost, Reason: "it was recorded on host " + c.Owner.Hostname}
}

func profileText(profile string) string {
	if profile == "" {
		return "no profile"
	}
	return "profile " + profile
}
