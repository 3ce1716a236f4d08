package fencectl

import (
	"github.com/urfave/cli/v2"

	"holdfast/internal/claimview"
	"holdfast/internal/clikit"
	"holdfast/pkg/claim"
)

func txVerb(s *session) *clikit.Verb {
	return &clikit.Verb{
		Name:  "tx",
		Usage: "inspect and clear the transaction file that a crash left behind",
		Description: `While a claim is being written, entwurf-owner.tx is there, for milliseconds. A program that was killed in
between leaves it, and every write waits for it in vain. It is never removed by itself.`,
		Verbs: []*clikit.Verb{txInspectVerb(s), txClearVerb(s)},
	}
}

// txCommands are the verbs about the transaction file of the session's directory, or about the garden's record-arm lock.
func (s *session) txCommands() claimview.Commands {
	if s.garden.ID == "" {
		return claimview.SessionCommands(s.flag())
	}
	commands := claimview.SessionCommands("--garden " + clikit.Quote(s.garden.ID) + " --meta-root " + clikit.Quote(s.garden.MetaRoot))
	commands.Users = "program that works on this garden"
	return commands
}

// txTarget is a claim file: a directory's transaction file, or a garden's record-arm lock.
type txTarget struct {
	target
	gardenOptions
}

func (t *txTarget) flags() []cli.Flag { return append(t.target.flags(), t.gardenOptions.flags()...) }

// claimFile is what the verbs do with it.
type claimFile struct {
	inspect func() (claim.Inspection, error)
	clear   func(claim.ClearRequest) (claim.Inspection, error)
	close   func() error
}

func (s *session) openTx(t txTarget) (claimFile, error) {
	if t.id == "" && t.root == "" {
		f, err := s.open(t.target, false)
		if err != nil {
			return claimFile{}, err
		}
		return claimFile{f.InspectTx, f.ClearTx, f.Close}, nil
	}
	if t.dir != "" {
		return claimFile{}, clikit.Usagef("give --dir, or --garden and --meta-root, not both")
	}
	g, err := s.openGarden(t.gardenOptions)
	return claimFile{g.InspectArm, g.ClearArm, func() error { return nil }}, err
}

func txInspectVerb(s *session) *clikit.Verb {
	var t txTarget
	return &clikit.Verb{
		Name:  "inspect",
		Usage: "say what the transaction file is, and how to clear it",
		Description: `The code is held (its creator has it open), abandoned (its creator is proven gone), unproven, or absent.
The remedy is the command that clears it, or shows who holds it.

Example:

   fencectl tx inspect --dir sessions/s1 | jq -r .remedy`,
		Flags:   t.flags(),
		Objects: []clikit.Object{&claimview.Object{}},
		Run: func(c *clikit.Call) error {
			f, err := s.openTx(t)
			if err != nil {
				return err
			}
			defer f.close()
			in, err := f.inspect()
			if err != nil {
				return err
			}
			return c.Emit(claimview.Found(in, s.txCommands()))
		},
	}
}

type txClearOptions struct {
	txTarget
	claim.ClearRequest
}

func txClearVerb(s *session) *clikit.Verb {
	var o txClearOptions
	return &clikit.Verb{
		Name:  "clear",
		Usage: "remove a transaction file that its creator left behind",
		Description: `Only an abandoned one is cleared by its token. An unproven one, such as another implementation's, needs
--force as well, or --force and --digest where it has no token. A held one is never cleared.

What --force risks: a transaction that is under way although nothing shows it. Clearing it then lets two programs write
the claim at once, and both may believe that they own the session.

Example: the command that 'fencectl tx inspect' prints

   fencectl tx clear --dir sessions/s1 --token 5c0c7d3e-8a51-4a0c-9d8e-2f6b1f0f4a11`,
		Flags:   append(o.flags(), claimview.ClearFlags(&o.ClearRequest)...),
		Objects: []clikit.Object{&claimview.Object{}},
		Mutates: true,
		Run: func(c *clikit.Call) error {
			if err := claimview.CheckClear(o.ClearRequest, "fencectl tx inspect"); err != nil {
				return err
			}
			f, err := s.openTx(o.txTarget)
			if err != nil {
				return err
			}
			defer f.close()
			in, err := f.clear(o.ClearRequest)
			if err != nil {
				return err
			}
			return c.Emit(claimview.Cleared(in))
		},
	}
}
