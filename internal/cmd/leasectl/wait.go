package leasectl

import (
	"time"

	"holdfast/internal/clikit"
	"holdfast/pkg/lease"
)

type waitOptions struct {
	target
	until   string
	timeout time.Duration
}

func waitVerb(s *session) *clikit.Verb {
	o := waitOptions{until: string(lease.UntilAcquirable)}
	return &clikit.Verb{
		Name:  "wait",
		Usage: "wait until the lease is free, expired, or either",
		Description: `Takes nothing: by the time it returns somebody else may have been faster. To wait and take the lease in
one step use acquire --wait. Prints the status at the end; on a terminal it shows meanwhile for whom it waits.
Free is a lease that was given back, expired one whose holder did not renew it, acquirable either, which is what you usually
want and the default. Without --lock, --fleet and --name it takes $LEASE_LOCK.

Example: shut the machine down when nobody drives the fleet any more

   leasectl wait --timeout 1h && poweroff`,
		Flags: append(o.flags(),
			clikit.WordFlag("for", "what to wait for, `STATE`", &o.until, string(lease.UntilFree), string(lease.UntilAcquirable), string(lease.UntilExpired)),
			clikit.DurationFlag("timeout", "give up after `LONG`", &o.timeout, time.Millisecond, lease.MaxDuration),
		),
		Objects: []clikit.Object{&statusObject{}},
		Mutates: true,
		Run:     func(c *clikit.Call) error { return s.wait(c, o) },
	}
}

func (s *session) wait(c *clikit.Call, o waitOptions) error {
	store, err := s.open(o.orEnvironment(), lease.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	progress := newProgress(c)
	err = store.Await(c.Context, lease.Condition(o.until), o.timeout, progress.waiting)
	progress.clear()
	if err != nil {
		return err
	}
	return c.Emit(s.look(store))
}
