package fencectl

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"holdfast/internal/clikit"
	"holdfast/pkg/fence"
	"holdfast/pkg/procid"
	"holdfast/pkg/regfile"
)

type reserveOptions struct {
	gardenOptions
	roots    fence.Roots
	ownerPID int
}

func reserveVerb(s *session) *clikit.Verb {
	var o reserveOptions
	return &clikit.Verb{
		Name:  "reserve",
		Usage: "keep a citizen's session directory for exactly one child",
		Description: `The directory that the garden's location names, whose last owner has closed it or is dead, is kept for a
child of --owner-pid. The child is given the generation, and adopts with it; nobody else is admitted meanwhile. Only the
same parent withdraws it.

Example: a launcher hands a session on

   r=$(fencectl reserve --garden 20261130T092000-0a1b2c --meta-root ~/.meta --owner-pid $$) || exit
   fencectl run --dir sessions/s1 --adopt-garden 20261130T092000-0a1b2c --meta-root ~/.meta \
      --adopt-generation "$(echo "$r" | jq -r .generation)" -- my-agent --resume`,
		Flags: append(o.flags(),
			ownerFlag(&o.ownerPID),
			clikit.TextFlag("meta-sessions", "instead of --meta-root, with the three below: `DIR`/meta-sessions", "none", &o.roots.Sessions),
			clikit.TextFlag("meta-mailbox", "`DIR`/meta-mailbox", "none", &o.roots.Mailbox),
			clikit.TextFlag("meta-senders", "`DIR`/meta-senders", "none", &o.roots.Senders),
			clikit.TextFlag("meta-receivers", "`DIR`/meta-receivers", "none", &o.roots.Receivers),
		),
		Objects: []clikit.Object{&reservation{}},
		Takes:   true,
		Mutates: true,
		Run:     func(c *clikit.Call) error { return s.reserve(c, o) },
	}
}

func ownerFlag(into *int) cli.Flag {
	return &cli.IntFlag{Name: "owner-pid", Usage: "the parent's `PID`, in a shell $$", Destination: into, DefaultText: "none"}
}

// owner is the process that a command line names as the parent.
func owner(pid int) (procid.Identity, error) {
	switch pid {
	case 0:
		return procid.Identity{}, clikit.Usagef("who is the parent? give --owner-pid PID; in a shell script that is $$")
	case os.Getpid():
		return procid.Identity{}, clikit.Usagef("--owner-pid %d is this very program, which ends in a moment; give the parent", pid)
	}
	return procid.Of(pid)
}

// reservation is what a child needs to adopt.
type reservation struct {
	clikit.Head
	GardenID   string          `json:"gardenId"`
	MetaRoot   string          `json:"metaRoot"`
	Resource   string          `json:"resource"`
	Generation string          `json:"generation"`
	Profile    string          `json:"profile,omitzero"`
	CWD        string          `json:"cwd"`
	Owner      procid.Identity `json:"owner"`
	Claim      *fence.Claim    `json:"claim"`
}

// Text says it in two lines.
func (o *reservation) Text() string {
	return fmt.Sprintf("%s: reserved for a child of %s\nadopt it with --adopt-garden %s --meta-root %s --adopt-generation %s",
		regfile.Printable(o.Resource), ownerText(o.Owner), o.GardenID, clikit.Quote(o.MetaRoot), o.Generation)
}

// target is the garden, by its meta root or by four roots that have to be one's children.
func (o *reserveOptions) complete() error {
	if o.roots == (fence.Roots{}) {
		return nil
	}
	if o.root != "" {
		return clikit.Usagef("give --meta-root, or the four roots, not both")
	}
	for _, root := range []*string{&o.roots.Sessions, &o.roots.Mailbox, &o.roots.Senders, &o.roots.Receivers} {
		if *root == "" {
			return clikit.Usagef("of the four roots none may be missing: --meta-sessions, --meta-mailbox, --meta-senders, --meta-receivers")
		}
		abs, err := filepath.Abs(*root)
		if err != nil {
			return regfile.IOError("resolve", *root, err)
		}
		*root = abs
	}
	root, err := o.roots.MetaRoot()
	o.root = root
	return err
}

func (s *session) reserve(c *clikit.Call, o reserveOptions) error {
	if err := o.complete(); err != nil {
		return err
	}
	g, err := s.openGarden(o.gardenOptions)
	if err != nil {
		return err
	}
	parent, err := owner(o.ownerPID)
	if err != nil {
		return err
	}
	r, err := fence.MakeReservation(c.Context, fence.Reserve{Garden: g, Owner: parent}, s.options())
	if err != nil {
		return err
	}
	err = c.Emit(&reservation{
		Head: clikit.Done("reserved"), GardenID: g.ID, MetaRoot: g.MetaRoot, Resource: r.Resource, Generation: r.Claim.Generation,
		Profile: r.Claim.Selected.Profile, CWD: r.Claim.Reservation.CWD, Owner: parent, Claim: r.Claim,
	})
	if clikit.Undeliverable(err) {
		return s.giveUp(r, parent, err)
	}
	return err
}

// giveUp withdraws a reservation whose generation reached nobody.
func (s *session) giveUp(r *fence.ReservedFor, parent procid.Identity, undelivered error) error {
	f, err := fence.Open(r.Resource, false, s.options())
	if err == nil {
		defer f.Close()
		_, err = f.Withdraw(context.Background(), r.Claim.Generation, parent)
	}
	if err != nil {
		return clikit.StillHeld(undelivered, err)
	}
	return fmt.Errorf("%w; the reservation was withdrawn", undelivered)
}

type withdrawOptions struct {
	target
	generation string
	ownerPID   int
}

func withdrawVerb(s *session) *clikit.Verb {
	var o withdrawOptions
	return &clikit.Verb{
		Name:  "withdraw",
		Usage: "take a reservation back that this parent made",
		Description: `Exactly the reservation of this generation, by the parent that made it: the row that it stood on returns.
One that a child has adopted meanwhile is refused.

Example: the launch failed

   fencectl withdraw --dir sessions/s1 --generation 0f3c… --owner-pid $$`,
		Flags: append(o.flags(),
			clikit.TextFlag("generation", "the reservation's `GENERATION`", "none", &o.generation), ownerFlag(&o.ownerPID)),
		Objects: []clikit.Object{&claimed{}},
		Mutates: true,
		Run:     func(c *clikit.Call) error { return s.withdraw(c, o) },
	}
}

func (s *session) withdraw(c *clikit.Call, o withdrawOptions) error {
	if o.generation == "" {
		return clikit.Usagef("which reservation? give --generation, as reserve printed it")
	}
	parent, err := owner(o.ownerPID)
	if err != nil {
		return err
	}
	f, err := s.open(o.target, false)
	if err != nil {
		return err
	}
	defer f.Close()
	claim, err := f.Withdraw(c.Context, o.generation, parent)
	if err != nil {
		return err
	}
	return c.Emit(newClaimed("withdrawn", f.Resource(), claim, "", nil))
}

type observeOptions struct {
	target
	generation string
}

func observeVerb(s *session) *clikit.Verb {
	var o observeOptions
	return &clikit.Verb{
		Name:  "observe",
		Usage: "say what has become of a reservation",
		Description: `Reads only. The code is adopted, not-yet-adopted, or lost: somebody else has the directory, or nobody.
What cannot be told is refused, with "observation": "unobserved".

Example: wait until the child has it

   until fencectl observe --dir sessions/s1 --generation 0f3c… | jq -e '.code == "adopted"'; do sleep 1; done`,
		Flags:   append(o.flags(), clikit.TextFlag("generation", "the reservation's `GENERATION`", "none", &o.generation)),
		Objects: []clikit.Object{&observed{}},
		Run:     func(c *clikit.Call) error { return s.observe(c, o) },
	}
}

// observed is what has become of a reservation.
type observed struct {
	clikit.Head
	Resource    string       `json:"resource"`
	Observation string       `json:"observation"`
	Claim       *fence.Claim `json:"claim"`
}

// Text says it in a line.
func (o *observed) Text() string {
	return fmt.Sprintf("%s: %s; it is %s", regfile.Printable(o.Resource), o.Observation, claimText(o.Claim))
}

func (s *session) observe(c *clikit.Call, o observeOptions) error {
	if o.generation == "" {
		return clikit.Usagef("which reservation? give --generation, as reserve printed it")
	}
	f, err := s.open(o.target, false)
	if err != nil {
		return err
	}
	defer f.Close()
	what, claim, err := f.Observe(o.generation)
	if err != nil {
		r := s.refusal(err)
		r.Observation = string(what)
		return c.Emit(r)
	}
	return c.Emit(&observed{Head: clikit.Done(string(what)), Resource: f.Resource(), Observation: string(what), Claim: claim})
}
