package regctl

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"holdfast/internal/clikit"
	"holdfast/pkg/regfile"
	"holdfast/pkg/registry"
)

func inspectVerb(s *session) *clikit.Verb {
	var o rootOptions
	return &clikit.Verb{
		Name:  "inspect",
		Usage: "say what is known of a root",
		Description: `Reads only, and always answers. The code is absent, stopped, idle, stopping, quarantined, or uncertain (status
65) with the reason. The verdict is about the owner's process. Idle does not mean ready.

Example:

   regctl inspect --root . | jq -r '.code, .registration.endpoint'`,
		Flags:   o.flags(),
		Objects: []clikit.Object{&inspected{}},
		Run: func(c *clikit.Call) error {
			h, err := s.openRoot(o)
			if err != nil {
				return err
			}
			defer h.Close()
			return c.Emit(s.inspected(h.Inspect(o.root)))
		},
	}
}

func listVerb(s *session) *clikit.Verb {
	var o homeOptions
	var probe bool
	return &clikit.Verb{
		Name:  "list",
		Usage: "show every service, with its owner's verdict",
		Description: `One object for each row, in the order in which they were acquired. With --probe it also tries each
endpoint: listening, refused, or occupied-by-other when the listener is not the owner's process, as far as the system shows
it. An answer does not mean that the service is healthy.

Example: the services whose owner is gone

   regctl list | jq -r 'select(.verdict == "dead").root'`,
		Flags: append(o.flags(),
			&cli.BoolFlag{Name: "probe", Usage: "try each endpoint", Destination: &probe, DisableDefaultText: true}),
		Objects: []clikit.Object{&inspected{}},
		Lists:   true,
		Run: func(c *clikit.Call) error {
			h, err := s.open(o)
			if err != nil {
				return err
			}
			defer h.Close()
			return h.List(func(in registry.Inspection, row registry.Reservation) error {
				object := s.inspected(in)
				object.Row = viewRow(&row)
				if probe {
					object.Probe = probeEndpoint(row)
				}
				return c.Emit(object)
			})
		},
	}
}

func accessVerb(s *session) *clikit.Verb {
	var o rootOptions
	return &clikit.Verb{
		Name:  "access",
		Usage: "give a client the endpoint, the epoch and the capability of a root's service",
		Description: `The capability is for the client that asks, and for nobody else: do not log it.

Example: talk to the service

   eval "$(regctl access --root . --format sh)" || exit
   curl -H "Authorization: Bearer $REG_CAPABILITY" "$REG_ENDPOINT/"`,
		Flags:    o.flags(),
		Objects:  []clikit.Object{&access{}},
		Exports:  []string{"REG_ROOT", "REG_ENDPOINT", "REG_EPOCH", "REG_CAPABILITY"},
		Replaces: true,
		Run: func(c *clikit.Call) error {
			h, err := s.openRoot(o)
			if err != nil {
				return err
			}
			defer h.Close()
			a, err := h.Access(o.root)
			if err != nil {
				return err
			}
			return c.Emit(&access{Head: clikit.Done("access"), Root: a.Root, Endpoint: a.Endpoint, Epoch: a.Epoch, Phase: string(a.Phase), Capability: a.Capability})
		},
	}
}

// access is what a client needs.
type access struct {
	clikit.Head
	Root       string `json:"root"`
	Endpoint   string `json:"endpoint"`
	Epoch      string `json:"epoch"`
	Phase      string `json:"phase"`
	Capability string `json:"capability"`
}

// Text is for a terminal, where a capability does not belong.
func (o *access) Text() string {
	return fmt.Sprintf("%s: %s, epoch %s, %s\nthe capability is not shown on a terminal: use --format json or sh", regfile.Printable(o.Root), o.Endpoint, o.Epoch, o.Phase)
}

// Exports are the variables of the shell form.
func (o *access) Exports() []clikit.Export {
	return []clikit.Export{{Name: "REG_ROOT", Value: o.Root}, {Name: "REG_ENDPOINT", Value: o.Endpoint}, {Name: "REG_EPOCH", Value: o.Epoch}, {Name: "REG_CAPABILITY", Value: o.Capability}}
}
