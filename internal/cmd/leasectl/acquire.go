package leasectl

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"holdfast/internal/clikit"
	"holdfast/pkg/lease"
)

type acquireOptions struct {
	target
	duration time.Duration
	wait     time.Duration
	label    string
	takeOver bool
	observe  bool
}

// acquireFlags are the flags of acquire, which run has too.
func acquireFlags(o *acquireOptions) []cli.Flag {
	return append(o.flags(),
		durationFlag(&o.duration, " (default 15m)"),
		clikit.DurationFlag("wait", "wait up to `LONG` while somebody else holds the lease; without --take-over one that expires meanwhile ends the wait with expired", &o.wait, 0, lease.MaxDuration),
		&cli.StringFlag{Name: "label", Usage: "`TEXT` for people, at most 200 characters", Destination: &o.label},
		&cli.BoolFlag{Name: "take-over", Usage: "also when an expired lease is there", Destination: &o.takeOver, DisableDefaultText: true},
		&cli.BoolFlag{Name: "observe", Usage: "with --take-over: first watch the expired lease for its whole duration, which takes that long, for filesystems shared by machines whose clocks disagree", Destination: &o.observe, DisableDefaultText: true},
	)
}

func acquireVerb(s *session) *clikit.Verb {
	var o acquireOptions
	return &clikit.Verb{
		Name:  "acquire",
		Usage: "take the lease, if nobody holds it",
		Description: `Prints the lease with your holder id, which renew, verify and release take. An expired lease is
taken over only with --take-over; the object then shows whose it was.

Example: take it for an hour, and keep the id in the shell

   eval "$(leasectl acquire --duration 1h --label "nightly build" --format sh)" || exit
   echo "$LEASE_HOLDER has fence token $LEASE_FENCE"`,
		Flags:   acquireFlags(&o),
		Objects: []clikit.Object{&leased{}},
		Exports: exported,
		Takes:   true,
		Mutates: true,
		Run:     func(c *clikit.Call) error { return s.acquire(c, o) },
	}
}

func (o acquireOptions) validate() error {
	switch {
	case !utf8.ValidString(o.label):
		return clikit.Usagef("--label is not UTF-8")
	case utf8.RuneCountInString(o.label) > lease.MaxLabel:
		return clikit.Usagef("--label has %d characters, more than %d", utf8.RuneCountInString(o.label), lease.MaxLabel)
	case o.observe && !o.takeOver:
		return clikit.Usagef("--observe goes with --take-over")
	}
	return nil
}

func (s *session) acquire(c *clikit.Call, o acquireOptions) error {
	if err := o.validate(); err != nil {
		return err
	}
	progress := newProgress(c)
	store, err := s.create(o.target, lease.Options{Observing: observing(c), Entering: progress.entering})
	if err != nil {
		return err
	}
	defer store.Close()
	out, err := acquireWaiting(c.Context, store, o, progress)
	if err != nil {
		return err
	}
	err = c.Emit(newLeased("acquired", store, out))
	if clikit.Undeliverable(err) {
		return s.giveBack(store, out.Lease, err)
	}
	return err
}

// acquireWaiting acquires as the options say, and shows on a terminal for whom it waits.
func acquireWaiting(ctx context.Context, store *lease.Store, o acquireOptions, progress *progress) (*lease.Outcome, error) {
	defer progress.clear()
	return store.AcquireWaiting(ctx, lease.AcquireRequest{
		Duration: o.duration, Label: o.label, TakeOver: o.takeOver, Observe: o.observe,
	}, o.wait, progress.waiting)
}

func observing(c *clikit.Call) func(*lease.Lease, time.Duration) {
	return func(l *lease.Lease, d time.Duration) {
		c.Progress("watching the expired lease of %s for %s before taking it over", l.Who(), d)
	}
}

// giveBack releases a lease whose holder id reached nobody.
func (s *session) giveBack(store *lease.Store, l *lease.Lease, undelivered error) error {
	if _, err := store.Release(context.Background(), l.HolderID); err != nil {
		return clikit.StillHeld(undelivered, err)
	}
	return fmt.Errorf("%w; the lease was given back", undelivered)
}
