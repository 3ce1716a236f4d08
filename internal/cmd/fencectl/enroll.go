package fencectl

import (
	"fmt"

	"holdfast/internal/clikit"
	"holdfast/pkg/fence"
	"holdfast/pkg/regfile"
)

type enrollOptions struct {
	gardenOptions
	cwd    string
	ticket string
}

func enrollVerb(s *session) *clikit.Verb {
	var o enrollOptions
	return &clikit.Verb{
		Name:  "enroll",
		Usage: "let a citizen's record and location name the directory that this owner has",
		Description: `The owner of a session directory binds it to a garden id, so that the session can be reserved by that id
later. Every enrolment is a new incarnation: reservations that were made before it can no longer be adopted.

Example: inside 'fencectl run'

   fencectl enroll --garden 20261130T092000-0a1b2c --meta-root ~/.meta --cwd "$PWD" --ticket "$FENCE_TICKET"`,
		Flags: append(o.flags(),
			clikit.TextFlag("cwd", "the `DIR` that the citizen works in, absolute", "none", &o.cwd),
			clikit.TextFlag("ticket", "the `FILE` that admit made", "none", &o.ticket),
		),
		Objects: []clikit.Object{&enrolled{}},
		Mutates: true,
		Run:     func(c *clikit.Call) error { return s.enroll(c, o) },
	}
}

// enrolled is a citizen that was bound to a directory.
type enrolled struct {
	clikit.Head
	GardenID          string       `json:"gardenId"`
	MetaRoot          string       `json:"metaRoot"`
	Resource          string       `json:"resource"`
	AttachIncarnation string       `json:"attachIncarnation"`
	Claim             *fence.Claim `json:"claim"`
}

// Text says it in a line.
func (o *enrolled) Text() string {
	return fmt.Sprintf("%s: enrolled as %s, incarnation %s", regfile.Printable(o.Resource), o.GardenID, o.AttachIncarnation)
}

func (s *session) enroll(c *clikit.Call, o enrollOptions) error {
	if o.cwd == "" {
		return clikit.Usagef("where does the citizen work? give --cwd DIR")
	}
	if err := s.needTicket(o.ticket); err != nil {
		return err
	}
	g, err := s.openGarden(o.gardenOptions)
	if err != nil {
		return err
	}
	e, err := fence.Enroll(c.Context, fence.Enrollment{Garden: g, CWD: o.cwd, Ticket: o.ticket}, s.options())
	if err != nil {
		return err
	}
	return c.Emit(&enrolled{
		Head: clikit.Done("enrolled"), GardenID: g.ID, MetaRoot: g.MetaRoot, Resource: e.Resource,
		AttachIncarnation: e.AttachIncarnation, Claim: e.Claim,
	})
}
