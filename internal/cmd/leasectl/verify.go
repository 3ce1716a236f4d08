package leasectl

import (
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"holdfast/internal/clikit"
	"holdfast/pkg/lease"
)

type verifyOptions struct {
	target
	holder       string
	fence        int64
	minRemaining time.Duration
}

func verifyVerb(s *session) *clikit.Verb {
	o := verifyOptions{fence: -1}
	return &clikit.Verb{
		Name:  "verify",
		Usage: "succeed only while the holder holds the lease: the guard for hooks",
		Description: `Reads the lease file and nothing else. Without --lock, --fleet and --name it takes $LEASE_LOCK, without
--holder $LEASE_HOLDER.

Example: refuse to push when the lease is not ours for another minute

   leasectl verify --min-remaining 1m && git push`,
		Flags: append(o.flags(),
			holderFlag(&o.holder, " (default $LEASE_HOLDER)"),
			&cli.GenericFlag{Name: "fence", Usage: "also require this fence token `N`", Value: &fenceValue{&o.fence}},
			clikit.DurationFlag("min-remaining", "also require that `LONG` is left", &o.minRemaining, 0, lease.MaxDuration),
		),
		Objects: []clikit.Object{&leased{}},
		Exports: exported,
		Run:     func(c *clikit.Call) error { return s.verify(c, o) },
	}
}

func (s *session) verify(c *clikit.Call, o verifyOptions) error {
	check := lease.Check{Holder: o.holder, MinRemaining: o.minRemaining}
	if check.Holder == "" {
		check.Holder = os.Getenv("LEASE_HOLDER")
	}
	if check.Holder == "" {
		return clikit.Usagef("whose lease? give --holder, or set LEASE_HOLDER")
	}
	if o.fence >= 0 {
		fence := uint64(o.fence)
		check.Fence = &fence
	}
	store, err := s.open(o.orEnvironment(), lease.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	l, err := store.Verify(check)
	if err != nil {
		return err
	}
	return c.Emit(newLeased("holds", store, &lease.Outcome{Lease: l}))
}
