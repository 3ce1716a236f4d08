package leasectl

import (
	"fmt"

	"holdfast/internal/clikit"
	"holdfast/pkg/lease"
)

type releaseOptions struct {
	target
	holder string
}

func releaseVerb(s *session) *clikit.Verb {
	var o releaseOptions
	return &clikit.Verb{
		Name:  "release",
		Usage: "give your lease back",
		Description: `--holder has no default: a child must not free its parent's lease by accident. An expired lease of
yours is released too.

Example:

   leasectl release --lock "$LEASE_LOCK" --holder "$LEASE_HOLDER"`,
		Flags:   append(o.flags(), holderFlag(&o.holder, "")),
		Objects: []clikit.Object{&leased{}},
		Mutates: true,
		Run:     func(c *clikit.Call) error { return s.release(c, o) },
	}
}

func (s *session) release(c *clikit.Call, o releaseOptions) error {
	if o.holder == "" {
		return clikit.Usagef("--holder is required: the id that acquire printed")
	}
	store, err := s.open(o.target, lease.Options{Entering: newProgress(c).entering})
	if err != nil {
		return err
	}
	defer store.Close()
	out, err := store.Release(c.Context, o.holder)
	if err != nil {
		return err
	}
	return doneAnyway(c.Emit(newLeased("released", store, out)), "released")
}

// doneAnyway adds to an object that reached nobody what has been done all the same.
func doneAnyway(err error, done string) error {
	if clikit.Undeliverable(err) {
		return fmt.Errorf("%w; the lease was %s all the same", err, done)
	}
	return err
}
