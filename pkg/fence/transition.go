package fence

import (
	"cmp"
	"fmt"

	"holdfast/pkg/procid"
	"holdfast/pkg/strictjson"
)

// Mark is a step that an owner reports. Empty values take what the state implies.
type Mark struct {
	To         State
	Storage    Storage // of an end
	Lease      Lease
	Attempt    bool   // the attempt to open storage is recorded with it
	EnvCleanup bool   // clearing the environment failed
	Cause      string // why an end failed; cut to 512 UTF-16 units
}

// standing is what a mark is decided on.
type standing struct {
	Claim   *Claim
	Ticket  Ticket
	Verdict procid.Verdict // of the claim's owner
}

// transit decides a mark: the claim to write, or the refusal.
func transit(m Mark, s standing, w write) (*Claim, *Refusal) {
	c := s.Claim
	if r := s.ours(); r != nil {
		return nil, r
	}
	if how := cmp.Or(m.forbidden(c, s.Ticket.StorageOpenAttempted), m.leaseChange(c)); how != "" {
		return nil, &Refusal{Code: CodeTransitionInvalid, Claim: c, How: how}
	}
	m = m.completed(c)
	next := &Claim{
		SchemaVersion: c.SchemaVersion, Resource: c.Resource, Selected: c.Selected, State: m.To, Owner: c.Owner,
		Generation: w.Generation, FirstParticipation: c.FirstParticipation, AdoptedFrom: c.AdoptedFrom,
		Lease: m.Lease, WrittenAt: w.At,
	}
	if m.To == Closed || m.To == CloseFailed {
		next.End = m.end(w)
	}
	return next, next.writable()
}

// ours refuses unless the claim is the one that the ticket's owner wrote last, and that owner may still write.
func (s standing) ours() *Refusal {
	switch {
	case s.Claim == nil:
		return &Refusal{Code: CodeClaimMissing}
	case s.Claim.Resource != s.Ticket.Resource:
		return refuse(CodeResourceMismatch, s.Claim, nil)
	case !s.Ticket.names(s.Claim.Generation):
		return &Refusal{Code: CodeGenerationMismatch, Claim: s.Claim, Generation: s.Ticket.last()}
	case s.Claim.SchemaVersion == SchemaLegacy:
		return &Refusal{Code: CodeTransitionInvalid, Claim: s.Claim, How: "schema 1 is not written"}
	case s.Claim.State == Closed || s.Claim.State == CloseFailed:
		return &Refusal{Code: CodeTransitionInvalid, Claim: s.Claim, How: "its owner has ended"}
	case s.Verdict.Word == procid.Dead:
		return &Refusal{Code: CodeTransitionInvalid, Claim: s.Claim, Verdict: &s.Verdict, How: "its owner is dead: " + s.Verdict.Reason}
	}
	return nil
}

// forbidden says why the step is not one of the table's; empty when it is.
func (m Mark) forbidden(c *Claim, attempted bool) string {
	from, opened := c.State, c.State == Leased || c.State == StorageOpen
	switch {
	case m.To == Leased && from == Fenced:
		return ""
	case m.To == StorageOpen && from == Leased:
		if !attempted {
			return "no storage open was attempted: mark storage-attempt first"
		}
		return ""
	case m.To == Closed && (opened || from == Fenced), m.To == CloseFailed && opened:
		return m.forbiddenEnd(c, attempted)
	}
	return fmt.Sprintf("%s does not lead to %s", from, m.To)
}

// forbiddenEnd: a lease that was held has an end, and one that was never held has none, or a later lease of somebody else's
// could be attributed to this owner.
func (m Mark) forbiddenEnd(c *Claim, attempted bool) string {
	from, storage := c.State, m.Storage
	if storage == "" {
		storage = m.impliedStorage(from)
	}
	switch {
	case m.Lease != "" && (m.Lease == NeverHeld) != (c.Lease == NeverHeld):
		return fmt.Sprintf("its native lease is %s, which does not end as %s", c.Lease, m.Lease)
	case m.To == Closed && storage == StorageClosed && from != StorageOpen:
		return "storage was not open, so it cannot have been closed"
	case storage == NeverOpened && (attempted || from == StorageOpen):
		return "a storage open was attempted, so it cannot be called never-opened"
	}
	return ""
}

// leaseChange: opening storage keeps the native lease as it is.
func (m Mark) leaseChange(c *Claim) string {
	if m.To == StorageOpen && m.Lease != "" && m.Lease != c.Lease {
		return fmt.Sprintf("opening storage keeps the native lease, which is %s", c.Lease)
	}
	return ""
}

// impliedStorage is the end of storage when the mark does not say.
func (m Mark) impliedStorage(from State) Storage {
	switch {
	case m.To == CloseFailed:
		return StorageUnknown
	case from == StorageOpen:
		return StorageClosed
	}
	return NeverOpened
}

// completed fills in what the state implies.
func (m Mark) completed(c *Claim) Mark {
	if m.Storage == "" && (m.To == Closed || m.To == CloseFailed) {
		m.Storage = m.impliedStorage(c.State)
	}
	if m.Lease != "" {
		return m
	}
	switch {
	case m.To == Leased:
		m.Lease = Held
	case m.To == StorageOpen, c.Lease == NeverHeld:
		m.Lease = c.Lease
	case m.To == Closed:
		m.Lease = Released
	default:
		m.Lease = Unknown
	}
	return m
}

func (m Mark) end(w write) *End {
	e := &End{At: w.At, Storage: m.Storage, Lease: m.Lease}
	if m.EnvCleanup {
		e.EnvCleanup = envFailed
	}
	if m.Cause != "" {
		cause := strictjson.Cut(m.Cause, maxCause)
		e.Cause = &cause
	}
	return e
}
