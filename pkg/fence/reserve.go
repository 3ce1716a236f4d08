package fence

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"holdfast/pkg/procid"
	"holdfast/pkg/regfile"
)

// Reserve asks for a citizen's directory to be kept for exactly one child of the owner.
type Reserve struct {
	Garden Garden
	Owner  procid.Identity // the parent
}

// ReservedFor is what a child needs to adopt.
type ReservedFor struct {
	Garden   Garden
	Resource string
	Claim    *Claim // as written
}

// MakeReservation reserves the directory that the garden's location names: record-arm lock, then the directory's
// transaction. Errors: *Refusal, *regfile.Error. A refusal writes nothing.
func MakeReservation(ctx context.Context, req Reserve, opts Options) (*ReservedFor, error) {
	if err := req.Garden.check(); err != nil {
		return nil, err
	}
	out := &ReservedFor{Garden: req.Garden}
	err := req.Garden.arm(ctx, "reserve", opts, func(a *armed) error {
		b, err := req.Garden.bound()
		if err != nil {
			return err
		}
		f, err := openLocated(b.Location, opts)
		if err != nil {
			return err
		}
		defer f.Close()
		out.Resource = f.resource
		return f.transact(ctx, "reserve", func(tx *transaction) error {
			prior, s, err := tx.observe()
			if err != nil {
				return err
			}
			c, refusal, err := tx.reserve(req, b, s)
			if err != nil {
				return err
			}
			if refusal != nil {
				refusal.Hold = &s.Hold
				return tx.refused(refusal)
			}
			out.Claim = c
			err = tx.publish(prior, c)
			a.written = tx.written
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// openLocated opens the directory that a location names.
func openLocated(l *Location, opts Options) (*Fence, error) {
	f, err := Open(l.NativeDirectory, false, opts)
	if err != nil {
		return nil, err
	}
	if f.resource != l.NativeDirectory {
		defer f.Close()
		return nil, f.located(&Refusal{Code: CodeRecordUnbound, How: "the location names " + l.NativeDirectory + ", which is " + f.resource + " by now"})
	}
	return f, nil
}

// reserve looks at the donor's selection and decides.
func (tx *transaction) reserve(req Reserve, b binding, s situation) (*Claim, *Refusal, error) {
	in := reserving{situation: s, binding: b}
	if s.Claim != nil {
		donor := donorOf(s.Claim)
		in.sameHost = sameHost(donor.Owner, req.Owner)
		in.donorResolves, in.resolveErr = resolves(donor.Selected.Directory)
		var leases []NativeLease
		leases, in.leaseErr = nativeLeases(donor.Selected.Directory, tx.resource)
		in.Lease = len(leases) > 0
	}
	return in.decide(req, tx.write())
}

// resolves is a directory's real path; empty when it does not resolve to a directory.
func resolves(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	var no unix.Errno
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP), err != nil && !errors.As(err, &no):
		return "", nil // what names no errno has too many links
	case err != nil:
		return "", regfile.IOError("resolve", path, no)
	}
	st, err := os.Stat(real)
	if err != nil || !st.IsDir() {
		return "", nil
	}
	return real, nil
}

// sameHost reports whether two identities are of one host: by name, or by boot, whatever the name is by now.
func sameHost(a, b procid.Identity) bool {
	if a.Hostname == b.Hostname {
		return true
	}
	x, y := procid.ParseKey(a.StartKey), procid.ParseKey(b.StartKey)
	return x.Scheme == procid.SchemeLinux && y.Scheme == procid.SchemeLinux && !x.Weak() && x.Boot == y.Boot
}

// donorOf is the native row that a reservation stands on: never a reservation's parent.
func donorOf(c *Claim) Donor {
	if c.State == Reserved {
		return c.Reservation.From
	}
	return Donor{Generation: c.Generation, State: c.State, Owner: c.Owner, Lease: c.Lease, End: c.End, Selected: c.Selected}
}

// reserving is what a reservation is decided on. Lease is looked for at the donor's selection.
type reserving struct {
	situation
	binding
	sameHost      bool   // the donor's host is this one
	donorResolves string // the real path of the donor's selection; empty when it has none
	resolveErr    error  // a *regfile.Error; it counts where the order comes to what was looked up
	leaseErr      error
}

// decide answers in the order that the protocol gives. The error is a *regfile.Error.
func (in reserving) decide(req Reserve, w write) (*Claim, *Refusal, error) {
	if r := in.holder(); r != nil {
		return nil, r, nil
	}
	donor := donorOf(in.Claim)
	if r := in.donor(donor); r != nil {
		return nil, r, nil
	}
	switch {
	case in.resolveErr != nil:
		return nil, nil, in.resolveErr
	case in.donorResolves != in.Resource:
		return nil, &Refusal{Code: CodeAliasMoved, Claim: in.Claim, How: donor.Selected.Directory + " does not lead to " + in.Resource + " any more"}, nil
	case in.leaseErr != nil:
		return nil, nil, in.leaseErr
	}
	native, code := in.native()
	if code != "" {
		return nil, refuse(code, in.Claim, nil), nil
	}
	c := &Claim{
		SchemaVersion: SchemaPlain, Resource: in.Resource, Selected: donor.Selected, State: Reserved, Owner: req.Owner,
		Generation: w.Generation, FirstParticipation: in.Claim.FirstParticipation, Lease: NeverHeld, WrittenAt: w.At,
		Reservation: &Reservation{
			GardenID: req.Garden.ID, N: donor.Selected.N, CWD: in.Record.CWD, Resource: in.Resource, Profile: donor.Selected.Profile,
			AttachIncarnation: in.Record.AttachIncarnation, NativeLease: native, From: donor,
		},
	}
	if donor.Selected.Profile != "" {
		c.SchemaVersion = SchemaDurable
	}
	if in.Claim.State != Closed {
		c.ReclaimedFrom = in.Claim.reclaimed()
	}
	return c, c.writable(), nil
}

// holder refuses while the claim is not there to be reserved.
func (in reserving) holder() *Refusal {
	c := in.Claim
	switch {
	case c == nil:
		return &Refusal{Code: CodeReserveUnarmed, How: "nobody has ever owned this directory; a reservation enrols nobody"}
	case c.Resource != in.Resource:
		return refuse(CodeResourceMismatch, c, nil)
	case c.State == Closed && c.End.Storage != StorageClosed:
		return &Refusal{Code: CodeReserveNotClean, Claim: c, How: "its last owner ended without having had storage open (" + string(c.End.Storage) + "), so there is no session to hand on"}
	case c.State == Closed:
		return nil
	}
	var code string
	switch in.Verdict.Word {
	case procid.Dead:
		return nil
	case procid.OtherHost:
		code = CodeOwnerOtherHost
	case procid.Live:
		code = CodeOwnerLive
	default:
		code = CodeOwnerUncertain
	}
	r := refuse(code, c, &in.Verdict)
	r.HolderState = c.State
	return r
}

// donor refuses a donor that is not the citizen of the record.
func (in reserving) donor(d Donor) *Refusal {
	no := func(code, how string) *Refusal { return &Refusal{Code: code, Claim: in.Claim, How: how} }
	switch {
	case !in.sameHost:
		return no(CodeProfileOtherHost, "its owner was on host "+d.Owner.Hostname)
	case d.Owner.PID != in.Location.OwnerPID || d.Owner.StartKey != in.Location.OwnerStartKey:
		return no(CodeProfileUnattributed, "its owner is not the one that enrolled: another process has owned the directory since")
	case d.Selected.N != in.Record.NativeSessionID:
		return no(CodeProfileNMismatch, "its session is "+d.Selected.N+", the record's is "+in.Record.NativeSessionID)
	case in.Claim.SchemaVersion == SchemaLegacy:
		return no(CodeProfileUnattributed, "its claim is of schema 1, which names no profile")
	case in.Claim.SchemaVersion == SchemaDurable && layout(d.Selected.Profile, in.Record.CWD, d.Selected.N) != d.Selected.Directory:
		return no(CodeLayoutMismatch, "the profile keeps the sessions of "+in.Record.CWD+" elsewhere: "+layout(d.Selected.Profile, in.Record.CWD, d.Selected.N))
	}
	return nil
}

// native is the table of the native lease: what the reservation records of it, or the refusal's code.
func (in reserving) native() (recorded, code string) {
	c := in.Claim
	switch {
	case !in.Lease:
		return leaseAbsent, ""
	case c.State == Closed:
		return "", CodeLegacyLease
	case c.State == Reserved && c.Reservation.NativeLease == leaseAbsent:
		return "", CodeLeaseAppeared
	case c.State == Reserved, c.Lease == Held, c.Lease == Unknown:
		return leasePresent, ""
	}
	return "", CodeLeaseUnattributed
}

// Withdraw takes a reservation back that its own parent made, at exactly this generation: the donor's row returns. No record
// is read. Errors: *Refusal, *regfile.Error.
func (f *Fence) Withdraw(ctx context.Context, generation string, owner procid.Identity) (*Claim, error) {
	var c *Claim
	err := f.transact(ctx, "withdraw", func(tx *transaction) error {
		prior, err := tx.read()
		if err != nil {
			return err
		}
		if r := withdrawable(prior.Claim, tx.resource, generation, owner); r != nil {
			return tx.located(r)
		}
		c = withdrawn(prior.Claim, tx.write())
		return tx.publish(prior, c)
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

func withdrawable(c *Claim, resource, generation string, owner procid.Identity) *Refusal {
	switch {
	case c != nil && c.Resource != resource:
		return refuse(CodeResourceMismatch, c, nil)
	case c == nil:
		return &Refusal{Code: CodeWithdrawNotOwn, How: "there is no claim to withdraw"}
	case c.State != Reserved:
		return &Refusal{Code: CodeWithdrawNotOwn, Claim: c, How: "it is " + string(c.State) + ", not reserved"}
	case c.Generation != generation:
		return &Refusal{Code: CodeWithdrawNotOwn, Claim: c, How: "it is at generation " + c.Generation + ", not at " + generation}
	case c.Owner != owner:
		return &Refusal{Code: CodeWithdrawNotOwn, Claim: c, How: "it was reserved by " + who(c) + ", not by this owner"}
	}
	return nil
}

// Observation is what has become of a reservation.
type Observation string

// The observations.
const (
	Adopted       Observation = "adopted"
	NotYetAdopted Observation = "not-yet-adopted"
	Lost          Observation = "lost"
	Unobserved    Observation = "unobserved"
)

// Observe says what has become of the reservation of this generation. It writes nothing. Unobserved comes with the *Refusal
// or *regfile.Error that says why.
func (f *Fence) Observe(generation string) (Observation, *Claim, error) {
	o, err := f.read()
	switch c := o.Claim; {
	case err != nil:
		return Unobserved, nil, err
	case c == nil:
		return Unobserved, nil, f.located(&Refusal{Code: CodeClaimMissing})
	case c.Resource != f.resource:
		return Unobserved, c, f.located(refuse(CodeResourceMismatch, c, nil))
	case c.AdoptedFrom != nil && c.AdoptedFrom.Generation == generation:
		return Adopted, c, nil
	case c.State == Reserved && c.Generation == generation:
		return NotYetAdopted, c, nil
	default:
		return Lost, c, nil
	}
}
