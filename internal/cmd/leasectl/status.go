package leasectl

import (
	"fmt"

	"holdfast/internal/claimview"
	"holdfast/internal/clikit"
	"holdfast/pkg/lease"
	"holdfast/pkg/regfile"
	"holdfast/pkg/strictjson"
)

type statusOptions struct {
	target
	require string
}

func statusVerb(s *session) *clikit.Verb {
	var o statusOptions
	return &clikit.Verb{
		Name:  "status",
		Usage: "say who holds the lease, and until when",
		Description: `Reads only. The code is the state: free, held or expired, all with status 0; a lease file that
cannot be trusted is corrupt, with status 65. Without --lock, --fleet and --name it takes $LEASE_LOCK.

Example: do something only while nobody drives the fleet

   leasectl status --require free && ./maintenance`,
		Flags: append(o.flags(),
			clikit.WordFlag("require", "fail unless the lease is in this `STATE`", &o.require, "held", "free", "expired")),
		Objects: []clikit.Object{&statusObject{}},
		Exports: exported,
		Run:     func(c *clikit.Call) error { return s.status(c, o) },
	}
}

// statusObject is a lease as it was found.
type statusObject struct {
	clikit.Head
	Name string `json:"name,omitzero"` // in list
	clikit.Location
	Lease       strictjson.Object `json:"lease,omitzero"`
	RemainingMs *int64            `json:"remainingMs,omitzero"` // negative once expired
	RenewBy     string            `json:"renewBy,omitzero"`
	Claim       *claimview.View   `json:"claim,omitzero"`
	Stage       *stageView        `json:"stage,omitzero"`

	status lease.Status
}

func newStatus(path string, st lease.Status) *statusObject {
	o := &statusObject{
		Head: clikit.Done(string(st.State)), Location: clikit.At(path),
		Claim: claimview.Of(st.Claim), Stage: viewStage(st.Stage), status: st,
	}
	if st.Lease != nil {
		ms := st.Remaining.Milliseconds()
		o.Lease, o.RemainingMs, o.RenewBy = st.Lease.Members(), &ms, lease.FormatTime(st.Lease.RenewBy())
	}
	return o
}

// Text says it in a line, and one more for each file beside the lease that should not stay there.
func (o *statusObject) Text() string {
	text := regfile.Printable(o.Path) + ": " + o.Code
	if l := o.status.Lease; l != nil {
		if o.status.State == lease.StateHeld {
			text += fmt.Sprintf(", %s left%s, by %s (renew by %s)", left(o.status.Remaining), fenceText(l), l.Who(), lease.FormatTime(l.RenewBy()))
		} else {
			text += fmt.Sprintf(", %s ago%s, of %s", left(-o.status.Remaining), fenceText(l), l.Who())
		}
	}
	if o.status.Claim != nil {
		text += "\nthere is " + o.status.Claim.Describe()
	}
	if o.Stage != nil {
		text += fmt.Sprintf("\nthere is a staging file (%s): a mutation is under way, or was cut off; the next one removes it", o.Stage.Kind)
	}
	return text
}

// Exports are the variables of the lease that is there, if any.
func (o *statusObject) Exports() []clikit.Export { return exports(o.Path, o.status.Lease) }

func (s *session) status(c *clikit.Call, o statusOptions) error {
	store, err := s.open(o.orEnvironment(), lease.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	object := s.look(store)
	if ok, is := object.(*statusObject); is && o.require != "" && ok.Code != o.require {
		return c.Emit(s.requireFailed(ok, o.require))
	}
	return c.Emit(object)
}

// look is the status of a lease as an object: a statusObject, or a refusal that shows what could be read all the same.
func (s *session) look(store *lease.Store) clikit.Object {
	st, err := store.Status()
	if err == nil {
		return newStatus(store.Path(), st)
	}
	r := s.refusal(err)
	if st.Lease != nil {
		r.Lease = st.Lease.Members()
	}
	r.Claim, r.Stage = claimview.Of(st.Claim), viewStage(st.Stage)
	return r
}

func (s *session) requireFailed(o *statusObject, required string) *refusal {
	r := &refusal{
		Head: clikit.Refused("require-failed"), Lease: o.Lease, Claim: o.Claim, Stage: o.Stage,
		Why: clikit.Why{
			Reason:   fmt.Sprintf("%s is %s, not %s", regfile.Printable(o.Path), o.Code, required),
			Location: o.Location,
		},
	}
	r.Remedy = s.remedy(r)
	return r
}
