package leasectl

import (
	"time"

	"github.com/urfave/cli/v2"

	"holdfast/internal/clikit"
	"holdfast/pkg/lease"
)

type renewOptions struct {
	target
	holder   string
	duration time.Duration
}

func renewVerb(s *session) *clikit.Verb {
	var o renewOptions
	return &clikit.Verb{
		Name:  "renew",
		Usage: "extend your lease",
		Description: `An expired lease is not renewed, even if nobody took it: acquire it again with --take-over.

Example: renew every five minutes while the work goes on

   while leasectl renew --lock "$LEASE_LOCK" --holder "$LEASE_HOLDER" >/dev/null; do sleep 300; done`,
		Flags:   append(o.flags(), holderFlag(&o.holder, ""), durationFlag(&o.duration, " (default: as before)")),
		Objects: []clikit.Object{&leased{}},
		Exports: exported,
		Mutates: true,
		Run:     func(c *clikit.Call) error { return s.renew(c, o) },
	}
}

func holderFlag(into *string, def string) cli.Flag {
	return clikit.TextFlag("holder", "the holder `ID` that acquire printed"+def, "", into)
}

func (s *session) renew(c *clikit.Call, o renewOptions) error {
	if o.holder == "" {
		return clikit.Usagef("--holder is required: the id that acquire printed")
	}
	store, err := s.open(o.target, lease.Options{Entering: newProgress(c).entering})
	if err != nil {
		return err
	}
	defer store.Close()
	out, err := store.Renew(c.Context, o.holder, o.duration)
	if err != nil {
		return err
	}
	return doneAnyway(c.Emit(newLeased("renewed", store, out)), "renewed")
}
