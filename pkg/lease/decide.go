package lease

import (
	"bytes"
	"time"

	"holdfast/pkg/regfile"
)

// Observed is the state a mutation is decided on: no lease, or one with exact bytes.
type Observed struct {
	Lease *Lease // nil when absent
	Bytes []byte
}

func (o Observed) same(p Observed) bool {
	return (o.Lease == nil) == (p.Lease == nil) && bytes.Equal(o.Bytes, p.Bytes)
}

// sameAs reports whether a snapshot (nil when absent) shows this state.
func (o Observed) sameAs(snap *regfile.Snapshot) bool {
	if o.Lease == nil || snap == nil {
		return o.Lease == nil && snap == nil
	}
	return bytes.Equal(o.Bytes, snap.Bytes)
}

// change is what a permitted mutation writes. Its lease lacks the fence token until the journal has given one.
type change struct {
	op      Op     // the journal line's
	publish *Lease // nil removes the lease
	prior   *Lease // what was there; nil when absent
}

// numbered reports whether the change gets a new fence token.
func (c change) numbered() bool { return c.op == OpAcquired || c.op == OpTakenOver }

// decision is a verb's pure rule: from what was observed and the time to a change, or a refusal.
type decision func(Observed, time.Time) (change, *Refusal)

// terms is what an acquire asks for; the identifiers are chosen before the decision, so that it stays pure.
type terms struct {
	holderID string
	token    string
	hostname string
	label    string
	duration time.Duration
	takeOver bool
}

func (t terms) decide(o Observed, now time.Time) (change, *Refusal) {
	c := change{op: OpAcquired, prior: o.Lease}
	if o.Lease != nil {
		if !o.Lease.Expired(now) {
			return change{}, &Refusal{Code: CodeHeld, Lease: o.Lease, now: now}
		}
		if !t.takeOver {
			return change{}, &Refusal{Code: CodeExpired, Lease: o.Lease, now: now}
		}
		c.op = OpTakenOver
	}
	c.publish = &Lease{
		HolderID:   t.holderID,
		Hostname:   t.hostname,
		AcquiredAt: FormatTime(now),
		ExpiresAt:  cut(now.Add(t.duration)),
		Duration:   t.duration.Seconds(),
		Token:      t.token,
		Label:      t.label,
	}
	return c, nil
}

// renewal is what a renew asks for; a zero duration keeps the term.
type renewal struct {
	holderID string
	token    string
	duration time.Duration
}

func (r renewal) decide(o Observed, now time.Time) (change, *Refusal) {
	if refusal := holds(o, r.holderID, now); refusal != nil {
		return change{}, refusal
	}
	next := *o.Lease
	next.Token = r.token
	if r.duration > 0 {
		next.Duration = r.duration.Seconds()
	} else if o.Lease.Duration > MaxDuration.Seconds() {
		return change{}, &Refusal{Code: CodeDurationOutOfRange, Lease: o.Lease, now: now}
	}
	next.ExpiresAt = cut(now.Add(next.term()))
	// The expiry strictly increases, whatever the clock did since.
	if earliest := cut(o.Lease.ExpiresAt.Add(time.Millisecond)); next.ExpiresAt.Before(earliest) {
		next.ExpiresAt = earliest
	}
	if next.ExpiresAt.Year() > 9999 {
		return change{}, &Refusal{Code: CodeDurationOutOfRange, Lease: o.Lease, now: now}
	}
	return change{op: OpRenewed, publish: &next, prior: o.Lease}, nil
}

// cut drops what the file does not carry.
func cut(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// removal is what a release asks for.
type removal struct{ holderID string }

func (r removal) decide(o Observed, now time.Time) (change, *Refusal) {
	if refusal := names(o, r.holderID, now); refusal != nil {
		return change{}, refusal
	}
	return change{op: OpReleased, prior: o.Lease}, nil
}

// names refuses unless the lease names the holder, expired or not.
func names(o Observed, holderID string, now time.Time) *Refusal {
	switch {
	case o.Lease == nil:
		return &Refusal{Code: CodeAbsent, now: now}
	case o.Lease.HolderID != holderID:
		return &Refusal{Code: CodeNotHolder, Lease: o.Lease, Holder: holderID, now: now}
	}
	return nil
}

// holds refuses unless the holder holds the lease now.
func holds(o Observed, holderID string, now time.Time) *Refusal {
	if refusal := names(o, holderID, now); refusal != nil {
		return refusal
	}
	if o.Lease.Expired(now) {
		return &Refusal{Code: CodeExpired, Lease: o.Lease, Holder: holderID, now: now}
	}
	return nil
}

// Check is what a verify asks: that the holder holds the lease, that its fence token is Fence (when given), and that at
// least MinRemaining of it is left.
type Check struct {
	Holder       string
	Fence        *uint64
	MinRemaining time.Duration
}

func (c Check) decide(o Observed, now time.Time) *Refusal {
	if refusal := holds(o, c.Holder, now); refusal != nil {
		return refusal
	}
	switch {
	case c.Fence != nil && o.Lease.Fence != *c.Fence:
		return &Refusal{Code: CodeFenceMismatch, Lease: o.Lease, Fence: *c.Fence, now: now}
	case o.Lease.ExpiresAt.Sub(now) < c.MinRemaining:
		return &Refusal{Code: CodeTooShort, Lease: o.Lease, MinRemaining: c.MinRemaining, now: now}
	}
	return nil
}
