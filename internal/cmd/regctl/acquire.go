package regctl

import (
	"context"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"holdfast/internal/clikit"
	"holdfast/pkg/procid"
	"holdfast/pkg/regfile"
	"holdfast/pkg/registry"
)

type acquireOptions struct {
	rootOptions
	endpoint string
	bound    string
	policy   string
	ownerPID int
	receipt  string
}

// configFlags are the flags that say how a root is configured.
func (o *acquireOptions) configFlags() []cli.Flag {
	return append(o.flags(),
		clikit.TextFlag("endpoint", "the `URL`, http://127.0.0.1:PORT or http://[::1]:PORT; port 0 leaves it open", "none", &o.endpoint),
		clikit.TextFlag("policy", "the policy's identity, 64 `HEX` digits", "that of host-config.json, or the stored one", &o.policy),
	)
}

// checked refuses values that no registry could hold.
func (o *acquireOptions) checked() error {
	for _, url := range []string{o.endpoint, o.bound} {
		if _, ok := registry.ParseEndpoint(url); !ok && url != "" {
			return clikit.Usagef("%q is no loopback endpoint: write http://127.0.0.1:PORT or http://[::1]:PORT", url)
		}
	}
	if o.policy != "" && !registry.ValidPolicy(o.policy) {
		return clikit.Usagef("%q is no policy identity: write 64 lower-case hex digits", o.policy)
	}
	return nil
}

func initVerb(s *session) *clikit.Verb {
	var o acquireOptions
	return &clikit.Verb{
		Name:  "init",
		Usage: "record how a root is configured, without a service",
		Description: `The same configuration again is nothing to do; another one is a conflict. acquire does this by itself.

Example:

   regctl init --root . --endpoint http://127.0.0.1:0`,
		Flags:   o.configFlags(),
		Objects: []clikit.Object{&initialized{}},
		Mutates: true,
		Run: func(c *clikit.Call) error {
			if o.endpoint == "" {
				return clikit.Usagef("where will it serve? give --endpoint URL")
			}
			if err := o.checked(); err != nil {
				return err
			}
			h, err := s.openRoot(o.rootOptions)
			if err != nil {
				return err
			}
			defer h.Close()
			if err := h.Init(c.Context, registry.Acquire{Root: o.root, Requested: o.endpoint, Policy: o.policy}); err != nil {
				return err
			}
			return c.Emit(&initialized{Head: clikit.Done("initialized"), Location: clikit.At(o.root), Endpoint: o.endpoint})
		},
	}
}

// initialized is a root that is configured.
type initialized struct {
	clikit.Head
	clikit.Location
	Endpoint string `json:"endpoint"`
}

// Text says it in a line.
func (o *initialized) Text() string {
	return fmt.Sprintf("%s: configured for %s", regfile.Printable(o.Path), o.Endpoint)
}

func acquireVerb(s *session) *clikit.Verb {
	var o acquireOptions
	return &clikit.Verb{
		Name:  "acquire",
		Usage: "register a service for a root and an endpoint",
		Description: `The root must not overlap another service's, and the endpoint must be free. The receipt is the owner's proof
for phase, release and assert; keep it to yourself. A service that has bound a port of its own choice says so with --bound.

Example: a service that has bound port 4100

   regctl acquire --root . --endpoint http://127.0.0.1:0 --bound http://127.0.0.1:4100 --owner-pid $$ --receipt my.receipt`,
		Flags: append(o.configFlags(),
			&cli.IntFlag{Name: "owner-pid", Usage: "the service's `PID`, in a shell $$", Destination: &o.ownerPID, DefaultText: "none"},
			clikit.TextFlag("bound", "the endpoint `URL` that the service has", "that of --endpoint", &o.bound),
			clikit.TextFlag("receipt", "the `FILE` to make", "one below the state home", &o.receipt),
		),
		Objects: []clikit.Object{&registered{}},
		Takes:   true,
		Mutates: true,
		Run:     func(c *clikit.Call) error { return s.acquire(c, o) },
	}
}

func (s *session) acquire(c *clikit.Call, o acquireOptions) error {
	switch {
	case o.root == "":
		return noRoot()
	case o.endpoint == "":
		return clikit.Usagef("where does it serve? give --endpoint URL")
	case o.ownerPID == 0:
		return clikit.Usagef("which process is the service? give --owner-pid PID; in a shell script that is $$")
	case o.ownerPID == os.Getpid():
		return clikit.Usagef("--owner-pid %d is this very program, which ends in a moment; give the service", o.ownerPID)
	}
	if err := o.checked(); err != nil {
		return err
	}
	owner, err := procid.Of(o.ownerPID)
	if err != nil {
		return err
	}
	h, err := s.openRoot(o.rootOptions)
	if err != nil {
		return err
	}
	defer h.Close()
	a, err := h.Acquire(c.Context, registry.Acquire{
		Root: o.root, Requested: o.endpoint, Bound: o.bound, Policy: o.policy, Owner: owner, Receipt: o.receipt,
	})
	if err != nil {
		return err
	}
	err = c.Emit(newRegistered("acquired", &a.Registration, a.Receipt))
	if clikit.Undeliverable(err) {
		if _, releaseErr := h.Release(context.Background(), a.Receipt); releaseErr != nil {
			return clikit.StillHeld(err, releaseErr)
		}
		return fmt.Errorf("%w; the registration was taken back", err)
	}
	return err
}
