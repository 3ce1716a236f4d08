package fence

import (
	"cmp"
	"strings"

	"holdfast/pkg/claim"
	"holdfast/pkg/procid"
)

// Status is a session directory as it was found. Nothing was written to find out.
type Status struct {
	Resource string
	Claim    *Claim
	Err      error // why the claim cannot be told: *Refusal or *regfile.Error
	Verdict  procid.Verdict
	Native   []NativeLease
	Tx       claim.Inspection
	TxErr    error // why the transaction file cannot be told
	Hold     Hold
	HoldErr  error    // why the hold cannot be told
	Temps    []string // names of what killed writes left behind
}

// Show looks at the session directory. The error is about the native lease, or what its listing needs, a *regfile.Error.
func (f *Fence) Show() (*Status, error) {
	s := &Status{Resource: f.resource}
	o, err := f.read()
	s.Claim, s.Err = o.Claim, err
	if s.Native, err = nativeLeases(f.selected, f.resource); err != nil {
		return nil, err
	}
	f.inspectTx(s)
	s.Hold, s.HoldErr = f.hold()
	if s.Claim != nil {
		f.settleStatus(s)
	}
	s.Hold.find(&s.Verdict.Reason)
	s.Temps, err = f.temps()
	return s, err
}

func (f *Fence) inspectTx(s *Status) {
	if s.Tx, s.TxErr = f.InspectTx(); s.TxErr != nil {
		s.Tx = claim.Inspection{State: claim.Absent}
	}
}

// settleStatus judges the claim that was found. Nobody is dead whose hold cannot be looked at.
func (f *Fence) settleStatus(s *Status) {
	s.Verdict = f.judge(s.Claim, s.Hold)
	if s.HoldErr != nil && s.Verdict.Word == procid.Dead {
		s.Verdict = procid.Verdict{Word: procid.Uncertain, Reason: "its own process is gone, but what lives of its run cannot be told: " + s.HoldErr.Error()}
	}
	if s.Claim.Resource != f.resource {
		s.Err = f.located(refuse(CodeResourceMismatch, s.Claim, nil))
	}
}

// temps lists the stages of writes that were killed. One of a transaction that is under way may be among them.
func (f *Fence) temps() ([]string, error) {
	names, err := f.dir.Names()
	var found []string
	for _, name := range names {
		if strings.HasPrefix(name, tempPrefix) {
			found = append(found, name)
		}
	}
	return found, err
}

// Explanation is the row of the admission table that applies to a directory now.
type Explanation struct {
	Status
	Row          Row
	NeedsProfile bool // only a request with a profile is admitted
}

// Admits reports whether an admission would succeed now, given the profile where one is needed.
func (e *Explanation) Admits() bool { return e.Row.admits() }

// Refusal is what an admission would be refused with; nil when it would succeed.
func (e *Explanation) Refusal() *Refusal {
	if e.Admits() {
		return nil
	}
	r := refuse(e.Row.Answer, e.Claim, &e.Verdict)
	r.Path, r.Resource, r.Native, r.Hold = e.Resource, e.Resource, e.Native, &e.Hold
	return r
}

// Explain says which row an admission would meet. Errors: *Refusal when the claim cannot be trusted, *regfile.Error.
func (f *Fence) Explain() (*Explanation, error) {
	s, err := f.Show()
	if err != nil {
		return nil, err
	}
	if s.Err != nil && s.Claim == nil {
		return nil, s.Err
	}
	if err := cmp.Or(s.TxErr, s.HoldErr); err != nil {
		return nil, err
	}
	row := situation{Resource: f.resource, Directory: f.selected, Claim: s.Claim, Verdict: s.Verdict, Lease: len(s.Native) > 0}.row()
	return &Explanation{Status: *s, Row: row, NeedsProfile: needsProfile(s.Claim)}, nil
}
