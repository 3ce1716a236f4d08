package leasectl

import (
	"fmt"

	"github.com/urfave/cli/v2"

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
		Objects: []clikit.Object{&claimObject{}},
		Run:     func(c *clikit.Call) error { return s.inspectClaim(c, t) },
	}
}

// claimObject is a claim file, as found or as cleared.
type claimObject struct {
	clikit.Head
	clikit.Location
	Claim  *claimView `json:"claim,omitzero"`
	Remedy string     `json:"remedy,omitzero"`

	in claim.Inspection
}

// Text describes the claim.
func (o *claimObject) Text() string {
	switch {
	case o.Code == "cleared":
		return "cleared " + o.in.Describe()
	case o.in.State == claim.Absent:
		return "there is no claim: no change is under way"
	case o.Remedy == "":
		return o.in.Describe()
	}
	return o.in.Describe() + "\nremedy: " + o.Remedy
}

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
	o := &claimObject{Head: clikit.Done(string(in.State)), Location: clikit.At(in.Path), in: in}
	if in.State != claim.Absent {
		o.Claim = viewClaim(&in)
	}
	switch in.State {
	case claim.Abandoned:
		o.Remedy = fmt.Sprintf("leasectl claim clear --lock %s --token %s", clikit.Quote(s.lock), clikit.Quote(in.Token))
	case claim.HeldNow:
		o.Remedy = holderCommand(o.Claim, in.Path) // a stopped creator shows as T
	case claim.Unproven:
		o.Remedy = s.forceRemedy(o.Claim)
	}
	return c.Emit(o)
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
		Flags: append(o.flags(),
			&cli.StringFlag{Name: "token", Usage: "the claim's `TOKEN`", Destination: &o.Token},
			&cli.StringFlag{Name: "digest", Usage: "with --force: the claim's fingerprint, `sha256:…`", Destination: &o.Digest},
			&cli.BoolFlag{Name: "force", Usage: "also an unproven claim; read the risk above", Destination: &o.Force, DisableDefaultText: true},
		),
		Objects: []clikit.Object{&claimObject{}},
		Mutates: true,
		Run:     func(c *clikit.Call) error { return s.clearClaim(c, o) },
	}
}

func (s *session) clearClaim(c *clikit.Call, o clearOptions) error {
	switch {
	case o.Token == "" && o.Digest == "":
		return clikit.Usagef("which claim? give --token; 'leasectl claim inspect' prints it")
	case o.Digest != "" && !o.Force:
		return clikit.Usagef("--digest goes with --force")
	case o.Digest != "" && o.Token != "":
		return clikit.Usagef("give --token or --digest, not both")
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
	return c.Emit(&claimObject{
		Head: clikit.Done("cleared"), Location: clikit.At(in.Path), Claim: viewClaim(&in), in: in,
	})
}
