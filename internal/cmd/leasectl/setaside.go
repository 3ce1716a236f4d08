package leasectl

import (
	"github.com/urfave/cli/v2"

	"holdfast/internal/clikit"
	"holdfast/pkg/lease"
	"holdfast/pkg/regfile"
)

type setAsideOptions struct {
	target
	fingerprint string
}

func setAsideVerb(s *session) *clikit.Verb {
	var o setAsideOptions
	return &clikit.Verb{
		Name:  "set-aside",
		Usage: "move a corrupt lease file or journal out of the way",
		Description: `Moves exactly the broken file with this fingerprint to NAME.broken-<8 hex digits>, with all its bytes. A
readable file is never moved. Setting a journal aside loses the highest fence token when no lease is there: later ones
begin again at 1.

Example: the command that the refusal prints

   leasectl set-aside --fingerprint sha256:0f34…`,
		Flags: append(o.flags(),
			&cli.StringFlag{Name: "fingerprint", Usage: "the broken file's `FINGERPRINT`, as the refusal shows it", Destination: &o.fingerprint}),
		Objects: []clikit.Object{&asideObject{}},
		Mutates: true,
		Run:     func(c *clikit.Call) error { return s.setAside(c, o) },
	}
}

// asideObject is a broken file that was moved.
type asideObject struct {
	clikit.Head
	clikit.Location
	Fingerprint string `json:"fingerprint"`
	MovedTo     string `json:"movedTo"`
}

// Text says what was moved where.
func (o *asideObject) Text() string {
	return "moved " + regfile.Printable(o.Path) + " to " + regfile.Printable(o.MovedTo)
}

func (s *session) setAside(c *clikit.Call, o setAsideOptions) error {
	if o.fingerprint == "" {
		return clikit.Usagef("--fingerprint is required: 'leasectl status' shows it")
	}
	store, err := s.open(o.target, lease.Options{Entering: newProgress(c).entering})
	if err != nil {
		return err
	}
	defer store.Close()
	moved, err := store.SetAside(c.Context, o.fingerprint)
	if err != nil {
		return err
	}
	return c.Emit(&asideObject{
		Head: clikit.Done("set-aside"), Location: clikit.At(moved.From), Fingerprint: o.fingerprint, MovedTo: moved.To,
	})
}
