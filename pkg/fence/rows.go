package fence

import (
	"holdfast/pkg/procid"
)

// Row is one line of the admission table.
type Row struct {
	Name        string `json:"name"`
	Claim       string `json:"claim"`       // what is on record
	NativeLease string `json:"nativeLease"` // present, absent, any, or that it is not asked for
	Answer      string `json:"answer"`      // fenced, or the refusal's code
}

// Rows is the admission table: the first row that fits applies.
func Rows() []Row {
	return []Row{
		rowMismatch, rowFresh, rowUnarmedLease, rowUnarmed, rowClosedLease, rowClosed, rowOtherHost, rowLive, rowUncertain,
		rowDeadAttributed, rowDeadLease, rowDead,
	}
}

// The rows.
var (
	rowMismatch       = Row{"resource-mismatch", "names another resource", "not asked", CodeResourceMismatch}
	rowFresh          = Row{"fresh", "none, and this call made the directory", "not asked", string(Fenced)}
	rowUnarmedLease   = Row{"unarmed-lease-present", "none, the directory existed", "present", CodeLegacyLease}
	rowUnarmed        = Row{"unarmed", "none, the directory existed", "absent", string(Fenced)}
	rowClosedLease    = Row{"closed-lease-present", "closed", "present", CodeLegacyLease}
	rowClosed         = Row{"closed", "closed", "absent", string(Fenced)}
	rowOtherHost      = Row{"owner-other-host", "not closed, owner on another host", "not asked", CodeOwnerOtherHost}
	rowLive           = Row{"owner-live", "not closed, owner lives", "not asked", CodeOwnerLive}
	rowUncertain      = Row{"owner-uncertain", "not closed, owner not proven dead", "not asked", CodeOwnerUncertain}
	rowDeadAttributed = Row{"owner-dead-attributed", "not closed, owner dead, had the lease", "any", string(Fenced)}
	rowDeadLease      = Row{"owner-dead-lease-present", "not closed, owner dead, never had the lease", "present", CodeLeaseUnattributed}
	rowDead           = Row{"owner-dead", "not closed, owner dead, never had the lease", "absent", string(Fenced)}
)

// admits reports whether the row lets a request in.
func (r Row) admits() bool { return r.Answer == string(Fenced) }

// situation is what an admission is decided on: all of it was observed inside the transaction.
type situation struct {
	Resource  string
	Directory string // as the request selects it
	Created   bool   // this call's own mkdir made the directory
	Claim     *Claim // nil when there is none
	Verdict   procid.Verdict
	Hold      Hold
	Lease     bool // a native lease is there
}

// row picks the row that applies.
func (s situation) row() Row {
	c := s.Claim
	switch {
	case c != nil && c.Resource != s.Resource:
		return rowMismatch
	case c == nil && s.Created:
		return rowFresh
	case c == nil && s.Lease:
		return rowUnarmedLease
	case c == nil:
		return rowUnarmed
	case c.State == Closed && s.Lease:
		return rowClosedLease
	case c.State == Closed:
		return rowClosed
	}
	switch s.Verdict.Word {
	case procid.OtherHost:
		return rowOtherHost
	case procid.Live:
		return rowLive
	case procid.Dead:
	default:
		return rowUncertain
	}
	switch {
	case c.attributed(s.Directory):
		return rowDeadAttributed
	case s.Lease:
		return rowDeadLease
	}
	return rowDead
}

// write is what a claim write brings of its own.
type write struct {
	Generation string
	At         string
}

// admit decides an admission: the claim to write, or the refusal. A claim that a profile's owners use is not taken without
// the profile: schema 3 would lock them out.
func admit(req Request, s situation, w write) (*Claim, *Refusal) {
	row := s.row()
	if !row.admits() {
		r := refuse(row.Answer, s.Claim, &s.Verdict)
		r.Hold = &s.Hold
		return nil, r
	}
	if needsProfile(s.Claim) && req.Profile == "" {
		return nil, refuse(CodeProfileRequired, s.Claim, nil)
	}
	c := &Claim{
		SchemaVersion: req.schema(), Resource: s.Resource,
		Selected: Selected{N: req.Session, Directory: s.Directory, Profile: req.Profile},
		State:    Fenced, Owner: req.Owner, Generation: w.Generation, Lease: NeverHeld, WrittenAt: w.At,
		FirstParticipation: First{At: w.At, Generation: w.Generation, From: FromExisting},
	}
	switch {
	case row == rowFresh:
		c.FirstParticipation.From = FromFresh
	case s.Claim != nil:
		c.FirstParticipation = s.Claim.FirstParticipation
		if s.Claim.State != Closed {
			c.ReclaimedFrom = s.Claim.reclaimed()
		}
	}
	return c, c.writable()
}

func needsProfile(c *Claim) bool {
	return c != nil && (c.SchemaVersion == SchemaLegacy || c.Selected.Profile != "")
}

// writable refuses a claim that Decode would not read back.
func (c *Claim) writable() *Refusal {
	if err := c.check(); err != nil {
		return &Refusal{Code: CodeTransitionInvalid, Claim: c, How: "the claim to write " + err.Error()}
	}
	return nil
}
