package fencectl

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"holdfast/internal/clikit"
	"holdfast/pkg/fence"
	"holdfast/pkg/regfile"
)

type breakOptions struct {
	target
	fence.Break
	mismatch bool
}

func breakVerb(s *session) *clikit.Verb {
	var o breakOptions
	return &clikit.Verb{
		Name:  "break",
		Usage: "end a claim whose owner will not, as the operator's last word",
		Description: `Ends exactly the claim at this generation, and keeps a line of it with your reason in
entwurf-owner.breaks.jsonl. A live owner is never broken, a dead one need not be: the next admission takes over. An owner
that cannot be proven dead from here needs --owner-is-gone: your word for it. If it lives after all, it goes on writing
until its next mark, which is refused; two programs then write to one session.

It admits nobody: the next admission does.

Example: the container is gone, and its owner with it

   fencectl break --dir sessions/s1 --generation 0f3c… --owner-is-gone --reason "container removed"`,
		Flags: append(o.flags(),
			clikit.TextFlag("generation", "the claim's `GENERATION`, as show gives it", "none", &o.Generation),
			clikit.TextFlag("reason", "why, in a `TEXT` for the record", "none", &o.Reason),
			&cli.BoolFlag{Name: "owner-is-gone", Usage: "you vouch for it; read the risk above", Destination: &o.OwnerIsGone, DisableDefaultText: true},
			&cli.BoolFlag{Name: "resource-mismatch", Usage: "move a claim away that names another directory, after a copy or a move", Destination: &o.mismatch, DisableDefaultText: true},
		),
		Objects: []clikit.Object{&claimed{}, &moved{}},
		Mutates: true,
		Run:     func(c *clikit.Call) error { return s.breakClaim(c, o) },
	}
}

// moved is a claim that was moved out of the way.
type moved struct {
	clikit.Head
	Resource    string `json:"resource"`
	Fingerprint string `json:"fingerprint,omitzero"`
	MovedTo     string `json:"movedTo"`
}

// Text says what was moved where.
func (o *moved) Text() string {
	return fmt.Sprintf("%s: the claim was moved to %s", regfile.Printable(o.Resource), regfile.Printable(o.MovedTo))
}

func (s *session) breakClaim(c *clikit.Call, o breakOptions) error {
	switch {
	case o.Generation == "":
		return clikit.Usagef("which claim? give --generation; 'fencectl show' prints it")
	case o.Reason == "":
		return clikit.Usagef("why? give --reason; it is kept in %s", fence.BreaksName)
	}
	f, err := s.open(o.target, false)
	if err != nil {
		return err
	}
	defer f.Close()
	if o.mismatch {
		aside, err := f.BreakMismatch(c.Context, o.Break)
		if err != nil {
			return err
		}
		return c.Emit(&moved{Head: clikit.Done("broken"), Resource: f.Resource(), MovedTo: aside})
	}
	claim, hold, err := f.Break(c.Context, o.Break)
	if err != nil {
		return err
	}
	var warnings []string
	if hold.State == fence.HoldBusy {
		warnings = append(warnings, "something of the broken run lives: nobody is admitted before that has ended, too; what it is: "+openersCommand(viewHold(hold, nil)))
	}
	return c.Emit(newClaimed("broken", f.Resource(), claim, "", warnings))
}
