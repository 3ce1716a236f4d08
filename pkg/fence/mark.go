package fence

import (
	"context"
	"os"

	"holdfast/pkg/procid"
)

// Marked is a step that was recorded.
type Marked struct {
	Claim    *Claim // as written
	Resource string
	Warnings []string // what went wrong after the success, sentences
}

// MarkTicket records a step of the owner whose ticket this is. Errors: *Refusal, *regfile.Error. A refusal changes nothing.
func MarkTicket(ctx context.Context, path string, m Mark, opts Options) (*Marked, error) {
	var out *Marked
	err := withTicket(ctx, path, "mark-"+string(m.To), opts, func(tx *transaction, t *ticketFile) (err error) {
		out, err = tx.mark(t, m)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// MarkAttempt records in the ticket alone that a storage open is about to be attempted, and returns the claim as it is.
func MarkAttempt(ctx context.Context, path string, opts Options) (*Marked, error) {
	var out *Marked
	err := withTicket(ctx, path, "mark-storage-attempt", opts, func(tx *transaction, t *ticketFile) error {
		content, stamp, err := t.read()
		if err != nil {
			return err
		}
		s, _, err := tx.standing(content)
		if err != nil {
			return err
		}
		if r := s.attemptable(); r != nil {
			return tx.located(r)
		}
		content.StorageOpenAttempted = true
		out = &Marked{Claim: s.Claim, Resource: tx.resource}
		return t.replace(content, stamp)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// attemptable refuses an attempt by anybody but an owner who is where storage can be opened.
func (s standing) attemptable() *Refusal {
	if r := s.ours(); r != nil {
		return r
	}
	if s.Claim.State != Leased && s.Claim.State != StorageOpen {
		return &Refusal{Code: CodeTransitionInvalid, Claim: s.Claim, How: "storage is opened after " + string(Leased) + ", and the claim is " + string(s.Claim.State)}
	}
	return nil
}

// withTicket opens the directory that a ticket names and runs do in a transaction there. The ticket is read again inside:
// what it says counts only there.
func withTicket(ctx context.Context, path, op string, opts Options, do func(*transaction, *ticketFile) error) error {
	t, err := openTicketDir(path, os.Getpid())
	if err != nil {
		return err
	}
	defer t.close()
	content, _, err := t.read()
	if err != nil {
		return err
	}
	f, err := Open(content.Resource, false, opts)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.transact(ctx, op, func(tx *transaction) error { return do(tx, t) })
}

// standing gathers what a mark is decided on.
func (tx *transaction) standing(t Ticket) (standing, recorded, error) {
	o, err := tx.read()
	if err != nil {
		return standing{}, o, err
	}
	if o.Claim != nil && t.Resource != tx.resource {
		return standing{}, o, tx.located(refuse(CodeResourceMismatch, o.Claim, nil)) // moved, and a symlink is in its place
	}
	s := standing{Claim: o.Claim, Ticket: t}
	if o.Claim != nil && t.names(o.Claim.Generation) {
		s.Verdict = tx.ownerVerdict(o.Claim)
	}
	return s, o, nil
}

// ownerVerdict judges the owner of a claim that is about to be written by that owner: a hold that cannot be read changes
// nothing then, for only a dead owner is refused, and a locked hold speaks against that.
func (tx *transaction) ownerVerdict(c *Claim) procid.Verdict {
	h, err := tx.hold()
	if err != nil {
		h = Hold{State: HoldAbsent}
	}
	return tx.judge(c, h)
}

func (tx *transaction) mark(t *ticketFile, m Mark) (*Marked, error) {
	content, stamp, err := t.read()
	if err != nil {
		return nil, err
	}
	content.StorageOpenAttempted = content.StorageOpenAttempted || m.Attempt
	s, prior, err := tx.standing(content)
	if err != nil {
		return nil, err
	}
	c, refusal := transit(m, s, tx.write())
	if refusal != nil {
		return nil, tx.located(refusal)
	}
	content.Generation, content.Pending = s.Claim.Generation, c.Generation
	if err := t.replace(content, stamp); err != nil {
		return nil, err
	}
	tx.iv.at("pending")
	if err := tx.publish(prior, c); err != nil {
		return nil, err
	}
	return &Marked{Claim: c, Resource: tx.resource, Warnings: t.settle(content, stamp)}, nil
}
