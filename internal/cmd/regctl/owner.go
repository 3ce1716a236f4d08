package regctl

import (
	"context"

	"github.com/urfave/cli/v2"

	"holdfast/internal/clikit"
	"holdfast/pkg/registry"
)

func receiptFlag(into *string) []cli.Flag {
	return []cli.Flag{clikit.TextFlag("receipt", "the `FILE` that acquire made", "none", into)}
}

// openReceipt opens the state home of a receipt.
func (s *session) openReceipt(path string) (*registry.Home, error) {
	if path == "" {
		return nil, clikit.Usagef("whose service is it? give --receipt FILE, the one that acquire made")
	}
	h, err := registry.OpenReceipt(path, s.options())
	if err == nil {
		s.home = h.Path()
	}
	return h, err
}

// ownerVerb is a verb of the owner: what it does with the receipt, and the word for it.
func ownerVerb(s *session, v clikit.Verb, code string, do func(ctx context.Context, h *registry.Home, receipt string) (*registry.Registration, error)) *clikit.Verb {
	var receipt string
	v.Flags = receiptFlag(&receipt)
	v.Objects = []clikit.Object{&registered{}}
	v.Run = func(c *clikit.Call) error {
		h, err := s.openReceipt(receipt)
		if err != nil {
			return err
		}
		defer h.Close()
		r, err := do(c.Context, h, receipt)
		if err != nil {
			return err
		}
		return c.Emit(newRegistered(code, r, receipt))
	}
	return &v
}

func phaseVerb(s *session) *clikit.Verb {
	phase := func(p registry.Phase, usage, example string) *clikit.Verb {
		return ownerVerb(s, clikit.Verb{Name: string(p), Usage: usage, Description: "Example:\n\n   " + example, Mutates: true}, "phase-set",
			func(ctx context.Context, h *registry.Home, receipt string) (*registry.Registration, error) {
				return h.SetPhase(ctx, receipt, p)
			})
	}
	return &clikit.Verb{
		Name:  "phase",
		Usage: "record what the service says of itself",
		Description: `A phase is the service's own word. None of them says that it is ready: that only the service itself can
say, asked with its epoch. A service is stopped by release.`,
		Verbs: []*clikit.Verb{
			phase(registry.Idle, "it is registered, and does nothing yet or again", "regctl phase idle --receipt my.receipt"),
			phase(registry.Stopping, "it is about to end", "regctl phase stopping --receipt my.receipt"),
			phase(registry.Quarantined, "it must not be used", "regctl phase quarantined --receipt my.receipt"),
		},
	}
}

func releaseVerb(s *session) *clikit.Verb {
	return ownerVerb(s, clikit.Verb{
		Name:  "release",
		Usage: "end a service's registration",
		Description: `The root and the endpoint are free afterwards, and the receipt is gone. The owner may have ended already.

Example:

   regctl release --receipt my.receipt`,
		Mutates: true,
	}, "released", func(ctx context.Context, h *registry.Home, receipt string) (*registry.Registration, error) {
		return h.Release(ctx, receipt)
	})
}

func assertVerb(s *session) *clikit.Verb {
	return ownerVerb(s, clikit.Verb{
		Name:  "assert",
		Usage: "succeed only while the service still owns its root",
		Description: `Every file has to be exactly as it was when the owner last wrote, by its bytes, inode and times, and the owner
has to live.

Example: a guard for a hook

   regctl assert --receipt my.receipt && ./work`,
	}, "asserted", func(_ context.Context, h *registry.Home, receipt string) (*registry.Registration, error) {
		return h.Assert(receipt)
	})
}
