package lease

import (
	"time"

	"golang.org/x/sys/unix"

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

// Status reads everything and writes nothing; it never needs the claim. With an error about the claim, the stage or the
// journal (not-regular, journal-corrupt) the status is valid nevertheless; a lease file that cannot be read or trusted
// gives the files beside it only.
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
	if beside := s.lookBeside(&st); err == nil {
		err = beside
	}
	return st, err
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
	if err := s.checkJournal(); err != nil {
		return err
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

// checkJournal fails when the next acquire would: on a journal that is no regular file, or has no readable line.
func (s *Store) checkJournal() error {
	f, err := s.dir.OpenOwned(s.journalName(), unix.O_RDONLY)
	if err != nil {
		if codeIn(err) == regfile.CodeNotRegular {
			return err
		}
		return nil
	}
	defer f.Close()
	if _, err := readTail(f, false); err != nil {
		return s.journalFault(f, err)
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
