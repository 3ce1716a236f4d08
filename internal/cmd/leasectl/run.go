package leasectl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"holdfast/internal/clikit"
	"holdfast/internal/supervise"
	"holdfast/pkg/lease"
)

// The statuses that run itself produces, as coreutils' timeout does.
const (
	statusLost    = 124
	statusRefused = 125
)

type runOptions struct {
	acquireOptions
	grace    time.Duration
	events   string
	conflict int
}

func runVerb(s *session) *clikit.Verb {
	var o runOptions
	return &clikit.Verb{
		Name:  "run",
		Usage: "hold the lease while a command runs",
		Args:  "-- COMMAND [ARG…]",
		Description: `Acquires the lease, starts the command with LEASE_LOCK, LEASE_HOLDER and LEASE_FENCE in its environment,
renews at half of the duration, and releases when the command ends. When the lease is lost the command is ended, with
all it started, before the lease's end: SIGTERM, then SIGKILL.

The command runs as without leasectl: same terminal, same standard streams, its own exit status. When a signal N ended it,
leasectl ends by that signal too, and a shell shows 128 + N. Where the status is leasectl's own, the last line on standard error
says so. What the command leaves running when it ends by itself stays, without the lease.

Example: the line for a launch script, which starts on the morning after a crash too

   leasectl run --take-over --wait 30s -- my-agent --resume`,
		Flags: append(acquireFlags(&o.acquireOptions),
			clikit.DurationFlag("grace", "how `LONG` ending the command may take (default: a quarter of the duration, at most 10s)", &o.grace, lease.MinGrace, lease.MaxDuration),
			&cli.StringFlag{Name: "events", Usage: "append JSON lines about what happens to the file at `PATH`", Destination: &o.events},
			&cli.IntFlag{Name: "conflict-exit-code", Aliases: []string{"E"}, Usage: "exit with `N` when somebody else holds the lease, also after a --wait, and when it has expired and there is no --take-over", Destination: &o.conflict, Value: statusRefused},
		),
		RawOutput: true,
		Command:   true,
		Failed:    statusRefused,
		Lost:      "the lease",
		Run:       func(c *clikit.Call) error { return s.run(c, o) },
	}
}

// keeping is one run: a lease, the command under it, and the record of both.
type keeping struct {
	store    *lease.Store
	events   *eventLog
	grace    time.Duration
	keeper   *lease.Keeper
	progress *progress
}

func (s *session) run(c *clikit.Call, o runOptions) error {
	if err := o.complete(c.Args); err != nil {
		return err
	}
	s.running = c.Words
	signals := supervise.Catch()
	progress := newProgress(c)
	store, err := s.create(o.target, lease.Options{Observing: observing(c), Entering: progress.entering})
	if err != nil {
		return err
	}
	defer store.Close()
	k := &keeping{store: store, grace: o.grace, progress: progress}
	if k.events, err = openEvents(o.events, absolute(s.lock), c.Warn); err != nil {
		s.events = o.events
		return err
	}
	defer k.events.close()
	out, err := acquireUntilSignal(store, o.acquireOptions, signals, progress)
	if err != nil {
		return o.conflicting(err)
	}
	progress.mute() // the terminal is the command's
	warn(c, out.Warnings)
	k.events.add(event{Event: "acquired", Lease: out.Lease.Members()})
	k.keeper = store.Keep(out, k.grace, k.events.keeper)
	child, err := k.start(c.Args, s.lock, signals)
	if err != nil {
		_ = k.release(c) // why the command did not start is the answer
		return err
	}
	return k.end(c, child.Run(signals, k.hold()))
}

// complete validates the options and fills in what depends on others.
func (o *runOptions) complete(command []string) error {
	if err := o.acquireOptions.validate(); err != nil {
		return err
	}
	if o.conflict < 0 || o.conflict > 255 {
		return clikit.Usagef("--conflict-exit-code must be from 0 to 255")
	}
	if o.duration == 0 {
		o.duration = lease.DefaultDuration
	}
	if o.grace == 0 {
		o.grace = lease.DefaultGrace(o.duration)
	}
	if err := lease.CheckGrace(o.duration, o.grace); err != nil {
		return clikit.Usagef("%v", err)
	}
	if o.label == "" {
		o.label = lease.ClipLabel(strings.ToValidUTF8(fmt.Sprintf("%s (pid %d)", strings.Join(command, " "), os.Getpid()), "\uFFFD"))
	}
	return nil
}

// conflicting gives a refusal that is about another holder the status that was asked for.
func (o *runOptions) conflicting(err error) error {
	switch clikit.CodeOf(err) {
	case lease.CodeHeld, lease.CodeExpired, lease.CodeChanged, lease.CodeWaitTimeout, lease.CodeClaimTimeout:
		return clikit.Exiting(o.conflict, err)
	}
	return err
}

// acquireUntilSignal acquires, waiting if that is asked for, until a signal ends the wait.
func acquireUntilSignal(store *lease.Store, o acquireOptions, signals *supervise.Signals, progress *progress) (out *lease.Outcome, err error) {
	sig := signals.During(func(ctx context.Context) { out, err = acquireWaiting(ctx, store, o, progress) })
	if sig == nil {
		return out, err
	}
	if err == nil {
		_, err = store.Release(context.Background(), out.Lease.HolderID)
	}
	return nil, errors.Join(clikit.Interrupted(sig), ignoreCancelled(err))
}

func ignoreCancelled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// start starts the command, if the lease is still ours and no signal has come that ends the run.
func (k *keeping) start(command []string, lock string, signals *supervise.Signals) (*supervise.Child, error) {
	if err := k.verify(signals); err != nil {
		return nil, err
	}
	l := k.keeper.Lease()
	child, err := supervise.Start(supervise.Command{Argv: command, Env: environment(exports(lock, l))})
	var failed *supervise.StartError
	if errors.As(err, &failed) {
		return nil, clikit.Exiting(failed.Status, err)
	}
	k.events.add(event{Event: "child-started", PID: child.PID})
	return child, nil
}

// verify fails unless the lease is ours and no signal came since the acquire that ends the run.
func (k *keeping) verify(signals *supervise.Signals) error {
	sig, err := signals.Heed(func() error {
		if _, err := k.store.Verify(lease.Check{Holder: k.keeper.Lease().HolderID}); err != nil {
			return err
		}
		return k.store.CheckPath()
	})
	if err == nil && sig != nil {
		err = clikit.Interrupted(sig)
	}
	return err
}

// environment is that of the command: this process's, with the exports in it.
func environment(exports []clikit.Export) []string {
	var variables []string
	for _, x := range exports {
		variables = append(variables, x.Name+"="+x.Value)
	}
	return supervise.Environment(os.Environ(), variables...)
}

func (k *keeping) hold() supervise.Hold {
	return supervise.Hold{
		Lost:  k.keeper.Lost(),
		Check: k.keeper.Check,
		Grace: func(loss error) time.Duration {
			k.events.add(event{Event: "lost", Code: clikit.CodeOf(loss), Reason: loss.Error()})
			return min(k.grace, k.keeper.Left())
		},
		Note: func(name string, n int) { k.events.add(event{Event: name, Processes: n}) },
	}
}

// end settles what a run leaves behind, and its exit status.
func (k *keeping) end(c *clikit.Call, r supervise.Result) error {
	k.events.add(event{Event: "child-exited", Status: &r.Status, Signal: signalName(r.Signal)})
	if r.Leftover > 0 {
		k.events.add(event{Event: "descendants-left", Processes: r.Leftover})
	}
	if r.Lost != nil {
		return clikit.Exiting(statusLost, lostError(r))
	}
	if loss := k.release(c); loss != nil {
		k.events.add(event{Event: "lost", Code: clikit.CodeOf(loss), Reason: loss.Error()})
		return clikit.Exiting(statusLost, fmt.Errorf("the lease was lost while the command ran: %w; the command had ended by itself "+
			"with status %d; status 124 is leasectl's own", loss, r.Status))
	}
	c.Exit(r.Status)
	if r.Signal != 0 {
		c.ExitBy(r.Signal)
	}
	return nil
}

// lostError is the loss with what became of the command.
func lostError(r supervise.Result) error {
	if r.Leftover > 0 {
		return fmt.Errorf("the lease was lost: %w; %d of the command's processes could not be ended; status 124 is leasectl's own", r.Lost, r.Leftover)
	}
	return fmt.Errorf("the lease was lost: %w; the command was ended; status 124 is leasectl's own", r.Lost)
}

// release gives the lease back, after a renewal that is under way. It waits no longer than the lease lasts: what hangs then
// is left to expire.
// It returns the loss, when it finds the lease gone, another's, or where nobody looks for it: then the command did not run under
// it to the end.
func (k *keeping) release(c *clikit.Call) error {
	ctx, cancel := context.WithTimeout(context.Background(), max(k.keeper.Left(), time.Second))
	defer cancel()
	k.progress.unmute()
	defer k.progress.mute()
	done := make(chan error, 1)
	go func() {
		if err := k.keeper.Stop(ctx); err != nil {
			done <- err
			return
		}
		out, err := k.store.Release(ctx, k.keeper.Lease().HolderID)
		if err == nil {
			warn(c, out.Warnings)
			k.events.add(event{Event: "released", Lease: out.Lease.Members()})
			err = k.store.CheckPath()
		}
		done <- err
	}()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil {
		return nil
	}
	switch clikit.CodeOf(err) {
	case lease.CodeAbsent, lease.CodeNotHolder, lease.CodeDirectoryMoved:
		return err
	default:
		c.Warn("the lease was not released, it expires by itself: %v", err)
	}
	return nil
}

func warn(c *clikit.Call, warnings []string) {
	for _, w := range warnings {
		c.Warn("%s", w)
	}
}
