package fence

import (
	"context"

	"golang.org/x/sys/unix"

	"holdfast/pkg/atomicfile"
	"holdfast/pkg/procid"
	"holdfast/pkg/strictjson"
)

// Break is an operator's last word about a claim.
type Break struct {
	Generation  string // exactly this one
	Reason      string
	OwnerIsGone bool // the operator vouches for an owner that is not proven dead
}

// breakLine is one line of the breaks file: what an operator did away with, when and why.
type breakLine struct {
	At       string          `json:"at"`
	Op       string          `json:"op"`
	Reason   string          `json:"reason,omitzero"`
	Operator procid.Identity `json:"operator"`
	Verdict  string          `json:"verdict,omitzero"`
	Claim    *Claim          `json:"claim,omitzero"`
	Lease    string          `json:"nativeLease,omitzero"`
	Mtime    string          `json:"mtime,omitzero"`
	MovedTo  string          `json:"movedTo,omitzero"`
}

// Break ends a claim whose owner will not end it: a reserved one returns to its donor's row, any other becomes close-failed.
// It admits nobody and stops nobody; the old owner's next mark finds another generation. The line in the breaks file is
// durable before the claim changes. Errors: *Refusal, *regfile.Error.
func (f *Fence) Break(ctx context.Context, b Break) (*Claim, error) {
	var c *Claim
	err := f.transact(ctx, "break", func(tx *transaction) error {
		prior, s, err := tx.observe()
		if err != nil {
			return err
		}
		self, err := tx.opts.Self()
		if err != nil {
			return err
		}
		next, refusal := breakDecision(b, s, self, tx.write())
		if refusal != nil {
			refusal.Hold = &s.Hold
			return tx.located(refusal)
		}
		line := breakLine{At: next.WrittenAt, Op: "break", Reason: b.Reason, Operator: self, Verdict: string(s.Verdict.Word), Claim: s.Claim}
		if err := tx.record(line); err != nil {
			return err
		}
		tx.iv.at("recorded")
		c = next
		return tx.publish(prior, next)
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// breakDecision decides a break: the claim to write, or the refusal.
func breakDecision(b Break, s situation, self procid.Identity, w write) (*Claim, *Refusal) {
	c := s.Claim
	switch {
	case c == nil:
		return nil, &Refusal{Code: CodeClaimMissing}
	case c.Resource != s.Resource:
		return nil, refuse(CodeResourceMismatch, c, nil)
	case c.Generation != b.Generation:
		return nil, &Refusal{Code: CodeGenerationMismatch, Claim: c, Generation: b.Generation}
	case c.State == Closed:
		return nil, &Refusal{Code: CodeTransitionInvalid, Claim: c, How: "it is closed, there is nothing to break"}
	case c.SchemaVersion == SchemaLegacy:
		return nil, &Refusal{Code: CodeTransitionInvalid, Claim: c, How: "schema 1 is not written: only the program that wrote it can end it"}
	}
	if s.Verdict.Word == procid.Dead {
		return nil, refuse(CodeOwnerDead, c, &s.Verdict)
	}
	if r := b.unbreakable(c, s.Verdict); r != nil {
		return nil, r
	}
	next := broken(c, self, w)
	return next, next.writable()
}

// unbreakable refuses while the owner lives, and while nobody vouches for one that is not proven dead.
func (b Break) unbreakable(c *Claim, v procid.Verdict) *Refusal {
	switch {
	case v.Word == procid.Live:
		return refuse(CodeOwnerLive, c, &v)
	case v.Word == procid.Dead || b.OwnerIsGone:
		return nil
	case v.Word == procid.OtherHost:
		return refuse(CodeOwnerOtherHost, c, &v)
	}
	return refuse(CodeOwnerUncertain, c, &v)
}

// broken is the claim that a break writes. Its owner is the breaker, which is gone in a moment.
func broken(c *Claim, self procid.Identity, w write) *Claim {
	if c.State == Reserved {
		return withdrawn(c, w)
	}
	lease := Released
	if c.Lease == Held || c.Lease == Unknown {
		lease = Unknown
	}
	return &Claim{
		SchemaVersion: c.SchemaVersion, Resource: c.Resource, Selected: c.Selected, State: CloseFailed, Owner: self,
		Generation: w.Generation, FirstParticipation: c.FirstParticipation, ReclaimedFrom: c.reclaimed(), Lease: lease,
		End: &End{At: w.At, Storage: StorageUnknown, Lease: lease}, WrittenAt: w.At,
	}
}

// withdrawn is the donor's own row again, under a new generation, with nothing else carried.
func withdrawn(c *Claim, w write) *Claim {
	d := c.Reservation.From
	return &Claim{
		SchemaVersion: c.SchemaVersion, Resource: c.Resource, Selected: d.Selected, State: d.State, Owner: d.Owner,
		Generation: w.Generation, FirstParticipation: c.FirstParticipation, Lease: d.Lease, End: d.End, WrittenAt: w.At,
	}
}

// record appends a line to the breaks file, durably.
func (tx *transaction) record(line breakLine) error {
	if err := atomicfile.Ensure(tx.dir, BreaksName, claimMode); err != nil {
		return err
	}
	file, err := tx.dir.OpenOwned(BreaksName, unix.O_RDWR|unix.O_APPEND)
	if err != nil {
		return err
	}
	defer file.Close()
	text, err := strictjson.Line(line)
	if err != nil {
		return err
	}
	st, err := file.Stat()
	if err != nil {
		return err
	}
	if err := atomicfile.Append(file, text, st.Size, true); err != nil || st.Size > 0 {
		return err
	}
	return tx.dir.Sync() // a new file's name is durable too
}

// BreakMismatch moves a claim that names another directory to NAME.broken-<8 hex digits>, and returns the path.
func (f *Fence) BreakMismatch(ctx context.Context, b Break) (string, error) {
	var aside string
	err := f.transact(ctx, "break", func(tx *transaction) error {
		prior, s, err := tx.observe()
		if err != nil {
			return err
		}
		if r := mismatchDecision(b, s); r != nil {
			r.Hold = &s.Hold
			return tx.located(r)
		}
		self, _ := tx.opts.Self()
		name := tx.asideName()
		line := breakLine{At: FormatTime(tx.opts.Now()), Op: "break-mismatch", Reason: b.Reason, Operator: self, Claim: prior.Claim, MovedTo: name}
		if err := tx.record(line); err != nil {
			return err
		}
		aside = tx.dir.Join(name)
		return atomicfile.Move(tx.dir, ClaimName, name)
	})
	return aside, err
}

// mismatchDecision refuses to move any claim but that of another directory whose owner has ended.
func mismatchDecision(b Break, s situation) *Refusal {
	c := s.Claim
	switch {
	case c == nil:
		return &Refusal{Code: CodeClaimMissing}
	case c.Generation != b.Generation:
		return &Refusal{Code: CodeGenerationMismatch, Claim: c, Generation: b.Generation}
	case c.Resource == s.Resource:
		return &Refusal{Code: CodeTransitionInvalid, Claim: c, How: "the claim names this directory, so it is not moved away"}
	case c.State == Closed:
		return nil
	}
	return b.unbreakable(c, s.Verdict)
}
