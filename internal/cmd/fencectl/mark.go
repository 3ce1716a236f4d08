package fencectl

import (
	"github.com/urfave/cli/v2"

	"holdfast/internal/clikit"
	"holdfast/pkg/fence"
)

type markOptions struct {
	ticket     string
	storage    string
	lease      string
	envCleanup bool
	cause      string
}

func markVerb(s *session) *clikit.Verb {
	return &clikit.Verb{
		Name:  "mark",
		Usage: "record how far the owner has got",
		Description: `Each step needs the one before: leased, then storage-attempt, then storage-open, then closed or
close-failed. A mark by anybody but the owner who wrote last is refused and changes nothing: so an owner that was paused
for long, and taken over meanwhile, learns of it here.`,
		Verbs: []*clikit.Verb{
			stepVerb(s, fence.Leased, "the native lease is held, or there is none to hold",
				"With --lease never-held (not with a profile) the owner takes no native lease.\n\nExample:\n\n   fencectl mark leased --ticket /tmp/s1.ticket"),
			attemptVerb(s),
			stepVerb(s, fence.StorageOpen, "storage is open",
				"Follows a storage-attempt.\n\nExample:\n\n   fencectl mark storage-open --ticket /tmp/s1.ticket"),
			stepVerb(s, fence.Closed, "everything is closed, and the lease is released",
				"The end of storage and of the lease are taken from the state before, unless they are given.\n\nExample:\n\n   fencectl mark closed --ticket /tmp/s1.ticket"),
			stepVerb(s, fence.CloseFailed, "the end failed, or is not known",
				"Without --storage and --lease both ends are recorded as unknown. The next owner is admitted once this one is\ndead, and learns of it.\n\nExample:\n\n   fencectl mark close-failed --storage failed --lease released --cause \"disk full\" --ticket /tmp/s1.ticket"),
		},
	}
}

// stepVerb is the mark of one state, with the flags that make sense for it.
func stepVerb(s *session, to fence.State, usage, description string) *clikit.Verb {
	var o markOptions
	v := &clikit.Verb{
		Name: string(to), Usage: usage, Description: description,
		Flags:   []cli.Flag{clikit.TextFlag("ticket", "the `FILE` that admit made", "none", &o.ticket)},
		Objects: []clikit.Object{&claimed{}},
		Mutates: true,
		Run:     func(c *clikit.Call) error { return s.mark(c, to, o) },
	}
	switch to {
	case fence.Leased:
		v.Flags = append(v.Flags, clikit.WordFlag("lease", "what became of the native `LEASE`", &o.lease, "held", "never-held"))
	case fence.Closed:
		v.Flags = append(v.Flags,
			clikit.WordFlag("storage", "how `STORAGE` ended", &o.storage, "closed", "never-opened"),
			clikit.WordFlag("lease", "how the native `LEASE` ended", &o.lease, "released", "never-held"), envFlag(&o), causeFlag(&o))
	case fence.CloseFailed:
		v.Flags = append(v.Flags,
			clikit.WordFlag("storage", "how `STORAGE` ended", &o.storage, "closed", "never-opened", "failed", "unknown"),
			clikit.WordFlag("lease", "how the native `LEASE` ended", &o.lease, "released", "failed", "unknown", "never-held"), envFlag(&o), causeFlag(&o))
	}
	return v
}

func envFlag(o *markOptions) cli.Flag {
	return &cli.BoolFlag{Name: "env-cleanup-failed", Usage: "clearing the environment failed", Destination: &o.envCleanup, DisableDefaultText: true}
}

func causeFlag(o *markOptions) cli.Flag {
	return &cli.StringFlag{Name: "cause", Usage: "why, in a `TEXT` for people, cut to 512 characters", Destination: &o.cause}
}

func attemptVerb(s *session) *clikit.Verb {
	var o markOptions
	return &clikit.Verb{
		Name: "storage-attempt", Usage: "storage is about to be opened",
		Description: "Written to the ticket alone, before the first open: from then on storage cannot be called never-opened.\n\n" +
			"Example:\n\n   fencectl mark storage-attempt --ticket /tmp/s1.ticket",
		Flags:   []cli.Flag{clikit.TextFlag("ticket", "the `FILE` that admit made", "none", &o.ticket)},
		Objects: []clikit.Object{&claimed{}},
		Mutates: true,
		Run: func(c *clikit.Call) error {
			if err := s.needTicket(o.ticket); err != nil {
				return err
			}
			m, err := fence.MarkAttempt(c.Context, o.ticket, s.options())
			if err != nil {
				return err
			}
			return c.Emit(newClaimed("marked", m.Resource, m.Claim, o.ticket, m.Warnings))
		},
	}
}

func (s *session) needTicket(path string) error {
	if path == "" {
		return clikit.Usagef("whose step is it? give --ticket FILE, the one that admit made")
	}
	s.ticket = path
	return nil
}

func (s *session) mark(c *clikit.Call, to fence.State, o markOptions) error {
	if err := s.needTicket(o.ticket); err != nil {
		return err
	}
	m, err := fence.MarkTicket(c.Context, o.ticket, fence.Mark{
		To: to, Storage: fence.Storage(o.storage), Lease: fence.Lease(o.lease), EnvCleanup: o.envCleanup, Cause: o.cause,
	}, s.options())
	if err != nil {
		return err
	}
	return c.Emit(newClaimed("marked", m.Resource, m.Claim, o.ticket, m.Warnings))
}
