package fence

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"holdfast/pkg/procid"
)

// Request asks for an admission.
type Request struct {
	Session string // n; default the base name of the directory
	Profile string // absolute and clean; empty for a directory outside the durable-session layout
	Owner   procid.Identity
	Ticket  string // path of the ticket to make
	Hold    bool   // take the hold file, for a run
}

// schema is the schema of the claim that the request writes.
func (r Request) schema() int {
	if r.Profile != "" {
		return SchemaDurable
	}
	return SchemaPlain
}

// Admission is a directory that was admitted to.
type Admission struct {
	Claim    *Claim   // as written
	Replaced *Claim   // the row before; nil when there was none
	Hold     *os.File // the locked hold file for the command, when it was asked for
	Ticket   string
	Warnings []string // what went wrong after the success, sentences

	own *os.File // the hold file with a lock of this process's own
}

// Close ends this process's part of the hold, if there is one. What the command has of it stays.
func (a *Admission) Close() {
	for _, f := range []**os.File{&a.Hold, &a.own} {
		if *f != nil {
			(*f).Close()
			*f = nil
		}
	}
}

// Admit takes the session directory for an owner, by the table of Rows. The ticket is made first, so that whatever is killed
// in between, the owner can tell its claim. Errors: *Refusal, *regfile.Error. A refusal writes nothing, and takes the ticket
// and a directory that Open made away again.
func (f *Fence) Admit(ctx context.Context, req Request) (*Admission, error) {
	if err := f.complete(&req); err != nil {
		f.unmake()
		return nil, err
	}
	a := &Admission{Ticket: req.Ticket}
	err := f.ticketed(req.Ticket, a, func(w write, settle func() []string) error {
		return f.transact(ctx, "admit", func(tx *transaction) error {
			err := tx.admit(a, req, w)
			if err == nil {
				a.Warnings = settle()
			}
			return err
		})
	})
	if a.Claim == nil {
		f.unmake()
		return nil, err
	}
	return a, err
}

// ticketed makes a new ticket that is pending, calls do, and takes the ticket away again unless the claim was written. settle
// makes the written generation the ticket's own; do calls it inside its transaction.
func (f *Fence) ticketed(path string, a *Admission, do func(w write, settle func() []string) error) error {
	ticket, err := openTicketDir(path, os.Getpid())
	if err != nil {
		return err
	}
	defer ticket.close()
	if ticket.inside(f.resource) {
		return f.located(&Refusal{Code: CodeAdmissionInvalid, Path: path, How: "the ticket " + path + " would lie inside the session directory; keep it outside"})
	}
	w := f.write()
	content := Ticket{Resource: f.resource, Pending: w.Generation}
	stamp, err := ticket.create(content)
	if err != nil {
		return err
	}
	f.iv.at("ticketed")
	err = do(w, func() []string { return ticket.settle(content, stamp) })
	if a.Claim == nil {
		_ = ticket.remove()
	}
	return err
}

func (tx *transaction) admit(a *Admission, req Request, w write) error {
	prior, s, err := tx.observe()
	if err != nil {
		return err
	}
	c, refusal := admit(req, s, w)
	if refusal != nil {
		return tx.refused(refusal)
	}
	return tx.admitAs(a, req, prior, c)
}

// admitAs publishes the claim of a new owner, whose hold is taken first.
func (tx *transaction) admitAs(a *Admission, req Request, prior recorded, c *Claim) (err error) {
	if req.Hold {
		if a.Hold, a.own, err = tx.takeHold(c); err != nil {
			return err
		}
	}
	tx.iv.at("decided")
	err = tx.publish(prior, c)
	if tx.written != nil {
		a.Claim, a.Replaced = c, prior.Claim
	} else {
		a.Close()
	}
	return err
}

// refused completes a refusal of the table with what is in the way.
func (f *Fence) refused(r *Refusal) error {
	if r.Code == CodeLegacyLease || r.Code == CodeLeaseUnattributed {
		r.Native, _ = nativeLeases(f.selected, f.resource)
	}
	return f.located(r)
}

// complete fills in the defaults of a request and refuses what can never be admitted.
func (f *Fence) complete(req *Request) error {
	if req.Session == "" {
		req.Session = filepath.Base(f.selected)
	}
	if how := incomplete(*req, f.selected); how != "" {
		return f.located(&Refusal{Code: CodeAdmissionInvalid, How: how})
	}
	return nil
}

// incomplete says what a request lacks; empty when nothing. selected is the directory, unless something else decides whether
// the profile is its own.
func incomplete(req Request, selected string) string {
	switch {
	case req.Ticket == "":
		return "a ticket is needed: the file that will tell the owner's claim"
	case !utf8.ValidString(req.Session) || strings.ContainsAny(req.Session, "/\x00") || req.Session == "." || req.Session == "..":
		return "the session is no file name"
	case req.Profile != "" && (!filepath.IsAbs(req.Profile) || filepath.Clean(req.Profile) != req.Profile || !utf8.ValidString(req.Profile)):
		return "the profile is no absolute, clean path"
	case req.Profile != "" && selected != "" && !durable(Selected{N: req.Session, Directory: selected, Profile: req.Profile}):
		return selected + " is not where the profile keeps session " + req.Session + ": " +
			filepath.Join(req.Profile, "experimental", "durable-sessions", "…", req.Session)
	case req.Owner.StartKey == "" || req.Owner.Hostname == "":
		return "the owner is not known"
	case req.Owner.PID < 1 || req.Owner.PID == 1 && req.Profile != "":
		return "the owner's pid cannot be recorded"
	}
	return ""
}

// PutBack takes an admission back, before its owner has done anything: the row that it replaced returns under a new
// generation, or, where there was none, an end without anything opened. The ticket goes.
func (f *Fence) PutBack(ctx context.Context, a *Admission) error {
	err := f.transact(ctx, "put-back", func(tx *transaction) error {
		now, err := tx.read()
		if err != nil {
			return err
		}
		if now.Claim == nil || now.Claim.Generation != a.Claim.Generation {
			return tx.lost(now.Claim, a.Claim.Generation)
		}
		return tx.publish(now, restored(a, tx.write()))
	})
	return errors.Join(err, removeTicket(a.Ticket))
}

// restored is the row that taking an admission back writes.
func restored(a *Admission, w write) *Claim {
	if a.Replaced != nil {
		c := *a.Replaced
		c.Generation, c.WrittenAt = w.Generation, w.At
		if c.SchemaVersion == SchemaLegacy { // which is not written
			c.SchemaVersion, c.Selected = a.Claim.SchemaVersion, a.Claim.Selected
		}
		return &c
	}
	c := *a.Claim
	c.Generation, c.WrittenAt, c.State, c.Lease = w.Generation, w.At, Closed, NeverHeld
	c.End = &End{At: w.At, Storage: NeverOpened, Lease: NeverHeld}
	return &c
}

// lost is the refusal when the claim is not the one that this owner wrote last.
func (f *Fence) lost(now *Claim, generation string) error {
	if now == nil {
		return f.located(&Refusal{Code: CodeClaimMissing})
	}
	return f.located(&Refusal{Code: CodeGenerationMismatch, Claim: now, Generation: generation})
}

func removeTicket(path string) error {
	t, err := openTicketDir(path, os.Getpid())
	if err != nil {
		return err
	}
	defer t.close()
	return t.remove()
}
