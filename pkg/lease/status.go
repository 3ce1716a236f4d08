package lease

import (
	"errors"
	"time"

	"holdfast/pkg/claim"
	"holdfast/pkg/regfile"
)

// State is what a lease file says, as a stable word.
type State string

// The states.
const (
	StateFree    State = "free"
	StateHeld    State = "held"
	StateExpired State = "expired"
)

// Status is a lease as it was found, and the files beside it.
type Status struct {
	State     State
	Lease     *Lease            // nil when free
	Remaining time.Duration     // until the expiry; negative once it has passed
	Claim     *claim.Inspection // nil when there is no claim
	Stage     *regfile.Stamp    // of a staging file: a mutation is under way, or was cut off
}

// Status reads everything and writes nothing; it never needs the claim. With an error of code not-regular about the claim,
// the stage or the journal the status is valid nevertheless; a lease file that cannot be read or trusted gives the files beside it
// only.
func (s *Store) Status() (Status, error) {
	o, now, err := s.observe()
	st := Status{State: StateFree, Lease: o.Lease}
	if o.Lease != nil {
		st.State, st.Remaining = StateHeld, o.Lease.ExpiresAt.Sub(now)
		if o.Lease.Expired(now) {
			st.State = StateExpired
		}
	}
	if s.dir == nil {
		return st, err
	}
	return st, errors.Join(err, s.lookBeside(&st))
}

// lookBeside examines the claim, the stage and the journal. A stage is reported and is no error, since the next mutation
// removes it; but for a directory, which stays and makes every mutation fail.
func (s *Store) lookBeside(st *Status) error {
	if stage, err := s.dir.Lstat(s.stageName()); err == nil {
		st.Stage = &stage
		if stage.Kind == regfile.Directory {
			return &regfile.Error{Code: regfile.CodeNotRegular, Path: s.dir.Join(s.stageName()), Kind: stage.Kind}
		}
	}
	if journal, err := s.dir.Lstat(s.journalName()); err == nil && journal.Kind != regfile.Regular {
		return &regfile.Error{Code: regfile.CodeNotRegular, Path: s.dir.Join(s.journalName()), Kind: journal.Kind}
	}
	in, err := claim.Inspect(s.dir, s.claimName())
	if err != nil {
		return err
	}
	if in.State != claim.Absent {
		st.Claim = &in
	}
	return nil
}

// InspectClaim says what the claim file is.
func (s *Store) InspectClaim() (claim.Inspection, error) {
	if s.dir == nil {
		return claim.Inspection{Path: s.path + ".mutex", State: claim.Absent, Reason: "there is no claim"}, nil
	}
	return claim.Inspect(s.dir, s.claimName())
}

// ClearClaim removes the claim that req names; see claim.Clear.
func (s *Store) ClearClaim(req claim.ClearRequest) (claim.Inspection, error) {
	if s.dir == nil {
		in, _ := s.InspectClaim()
		return in, &claim.ClearError{Code: CodeAbsent, Inspection: in}
	}
	return claim.Clear(s.dir, s.claimName(), req)
}
