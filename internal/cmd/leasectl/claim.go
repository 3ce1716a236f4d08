package leasectl

import (
	"holdfast/internal/claimview"
	"holdfast/internal/clikit"
	"holdfast/pkg/claim"
	"holdfast/pkg/lease"
)

func claimVerb(s *session) *clikit.Verb {
	return &clikit.Verb{
		Name:  "claim",
		Usage: "inspect and clear the claim file that a crash left behind",
		Description: `While a lease is being changed, LOCK.mutex is there, for milliseconds. A program that was killed in
between leaves it, and every change waits for it in vain. It is never removed by itself.`,
		Verbs: []*clikit.Verb{claimInspectVerb(s), claimClearVerb(s)},
	}
}

func claimInspectVerb(s *session) *clikit.Verb {
	var t target
	return &clikit.Verb{
		Name:  "inspect",
		Usage: "say what the claim file is, and how to clear it",
		Description: `The code is held (its creator has it open), abandoned (its creator is proven gone), unproven, or absent.
The remedy is the command that clears it, or shows who holds it: a creator that was stopped (state T)
finishes after kill -CONT.

Example:

   leasectl claim inspect | jq -r .remedy`,
		Flags:   t.flags(),
		Objects: []clikit.Object{&claimview.Object{}},
		Run:     func(c *clikit.Call) error { return s.inspectClaim(c, t) },
	}
}

// claimCommands are the verbs about the claim of the session's lock.
func (s *session) claimCommands() claimview.Commands { return claimview.LeaseCommands(s.lock) }

func (s *session) inspectClaim(c *clikit.Call, t target) error {
	store, err := s.open(t, lease.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	in, err := store.InspectClaim()
	if err != nil {
		return err
	}
	return c.Emit(claimview.Found(in, s.claimCommands()))
}

type clearOptions struct {
	target
	claim.ClearRequest
}

func claimClearVerb(s *session) *clikit.Verb {
	var o clearOptions
	return &clikit.Verb{
		Name:  "clear",
		Usage: "remove a claim file that its creator left behind",
		Description: `Only an abandoned claim is cleared by its token. An unproven one needs --force as well, or --force and
--digest where it has no token. A held one is never cleared.

What --force risks: a claim of another implementation may be live although nothing shows it. Clearing it then lets two
programs change the lease at once, and both may believe that they hold it, now and again later. Use it only when no
program that uses this lease can be running, on any machine that sees the file.

Example: the command that 'leasectl claim inspect' prints

   leasectl claim clear --lock state/orchestrator.lock --token 5c0c7d3e-8a51-4a0c-9d8e-2f6b1f0f4a11`,
		Flags:   append(o.flags(), claimview.ClearFlags(&o.ClearRequest)...),
		Objects: []clikit.Object{&claimview.Object{}},
		Mutates: true,
		Run:     func(c *clikit.Call) error { return s.clearClaim(c, o) },
	}
}

func (s *session) clearClaim(c *clikit.Call, o clearOptions) error {
	if err := claimview.CheckClear(o.ClearRequest, "leasectl claim inspect"); err != nil {
		return err
	}
	store, err := s.open(o.target, lease.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	in, err := store.ClearClaim(o.ClearRequest)
	if err != nil {
		return err
	}
	return c.Emit(claimview.Cleared(in))
}
