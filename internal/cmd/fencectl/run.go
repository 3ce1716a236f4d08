package fencectl

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"holdfast/internal/clikit"
	"holdfast/internal/supervise"
	"holdfast/pkg/fence"
	"holdfast/pkg/procid"
)

// The statuses that run itself produces, as coreutils' timeout does.
const (
	statusLost    = 124
	statusRefused = 125
)

// endingGrace is how long ending the command may take when the hold is lost.
const endingGrace = 10 * time.Second

// The ways of dealing with the native lease.
const (
	nativeNone  = "none"  // nobody takes one
	nativeHold  = "hold"  // run takes it
	nativeChild = "child" // the command takes it, and marks its states itself
)

type runOptions struct {
	admitOptions
	native   string
	stale    time.Duration
	leftover time.Duration
	conflict int
}

func runVerb(s *session) *clikit.Verb {
	o := runOptions{stale: fence.DefaultStale, leftover: 10 * time.Second}
	return &clikit.Verb{
		Name:  "run",
		Usage: "own a session directory while a command runs",
		Args:  "-- COMMAND [ARG…]",
		Description: `Admits itself as the owner, starts the command with FENCE_DIR and FENCE_TICKET in its environment, and
records the end when the command ends: closed when it exited and left nothing behind, close-failed otherwise. Everything
that the command starts shares the hold of the directory: until the last of it is gone nobody else is admitted, even when
fencectl itself was killed.

The native lease is DIR.lock, which programs like proper-lockfile make beside the directory. --native-lease none takes
none, hold takes and keeps it, child leaves it to the command, which then marks its own states with $FENCE_TICKET
(default: child with --profile, else none).

The command runs as without fencectl: same terminal, same standard streams, its own exit status (128 + N after signal N).
Where the status is fencectl's own, the last line on standard error says so.

Example: one agent per session directory, made when it is missing

   fencectl run --dir sessions/s1 --create -- my-agent --resume`,
		Flags: append(admissionFlags(&o.admitOptions),
			clikit.WordFlag("native-lease", "who takes the native `LEASE`", &o.native, nativeNone, nativeHold, nativeChild),
			clikit.DurationFlag("native-stale", "with hold: a dead owner's lease is taken over after so `LONG` untouched", &o.stale, time.Second, 24*time.Hour),
			clikit.DurationFlag("leftover-wait", "how `LONG` to wait for what the command left running", &o.leftover, 0, 24*time.Hour),
			&cli.IntFlag{Name: "conflict-exit-code", Aliases: []string{"E"}, Usage: "exit with `N` when somebody else has the session", Destination: &o.conflict, Value: statusRefused},
		),
		RawOutput: true,
		Command:   true,
		Failed:    statusRefused,
		Lost:      "the hold of the directory",
		Run:       func(c *clikit.Call) error { return s.run(c, o) },
	}
}

// complete validates the options and fills in what depends on others.
func (o *runOptions) complete() error {
	switch {
	case o.conflict < 0 || o.conflict > 255:
		return clikit.Usagef("--conflict-exit-code must be from 0 to 255")
	case o.native == nativeNone && o.profile != "":
		return clikit.Usagef("--native-lease none goes without --profile: the other owners of a profile expect a native lease")
	case o.native == "" && o.profile != "":
		o.native = nativeChild
	case o.native == "":
		o.native = nativeNone
	}
	name := make([]byte, 8)
	if _, err := rand.Read(name); err != nil {
		return err
	}
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		dir = os.TempDir()
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	o.ticket = filepath.Join(dir, "fencectl-"+hex.EncodeToString(name)+".ticket")
	return nil
}

// owning is one run: the admission, and what is held under it.
type owning struct {
	s      *session
	f      *fence.Fence
	a      *fence.Admission
	o      runOptions
	native *fence.NativeHold // nil unless run has it
	lost   chan error        // gives a loss, once
	open   bool              // storage-open is on record
}

func (s *session) run(c *clikit.Call, o runOptions) error {
	if err := o.complete(); err != nil {
		return err
	}
	s.ticket = o.ticket
	signals := supervise.Catch()
	w, err := s.own(signals, o)
	if err != nil {
		return o.conflicting(err)
	}
	defer w.close()
	for _, text := range w.a.Warnings {
		c.Warn("%s", text)
	}
	child, err := w.start(c.Args, signals)
	if err != nil {
		return o.conflicting(err)
	}
	s.progress.Line = nil // the terminal is the command's
	w.opened()
	result := child.Run(signals, w.hold())
	if result.Lost == nil {
		result.Leftover = child.Linger(o.leftover, signals)
	}
	return w.end(c, result)
}

// own admits this process.
func (s *session) own(signals *supervise.Signals, o runOptions) (*owning, error) {
	self, err := procid.Of(os.Getpid())
	if err != nil {
		return nil, err
	}
	request, err := o.request(self)
	if err != nil {
		return nil, err
	}
	request.Hold = true
	w := &owning{s: s, o: o, lost: make(chan error, 1)}
	sig := signals.During(func(ctx context.Context) { w.f, w.a, err = s.enter(ctx, o.admitOptions, request) })
	if err == nil && sig != nil {
		err = errors.Join(clikit.Interrupted(sig), w.putBack())
	} else if sig != nil && errors.Is(err, context.Canceled) {
		err = clikit.Interrupted(sig)
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// start takes the native lease, marks leased, and starts the command, which inherits the hold. Whatever fails before the
// command has begun is undone.
func (w *owning) start(command []string, signals *supervise.Signals) (*supervise.Child, error) {
	if err := w.lease(signals); err != nil {
		return nil, errors.Join(err, w.releaseNative(), w.putBack())
	}
	child, err := supervise.Start(supervise.Command{
		Argv: command, Kept: []*os.File{w.a.Hold},
		Env: supervise.Environment(os.Environ(), "FENCE_DIR="+w.f.Selected(), "FENCE_TICKET="+w.o.ticket),
	})
	if err == nil {
		return child, nil
	}
	var failed *supervise.StartError
	if errors.As(err, &failed) {
		err = clikit.Exiting(failed.Status, err)
	}
	return nil, errors.Join(err, w.neverOpened())
}

// lease takes the native lease and marks it, if it is run's to take, unless a signal comes first.
func (w *owning) lease(signals *supervise.Signals) (err error) {
	if w.o.native == nativeChild {
		return w.heed(signals)
	}
	mark := fence.Mark{To: fence.Leased, Lease: fence.NeverHeld}
	if w.o.native == nativeHold {
		mark.Lease = fence.Held
		sig := signals.During(func(ctx context.Context) { w.native, err = w.f.TakeNative(ctx, w.a, w.o.stale) })
		if sig != nil {
			err = clikit.Interrupted(sig)
		}
		if err != nil {
			return err
		}
	}
	if err := w.heed(signals); err != nil {
		return err
	}
	m, err := w.mark(mark)
	if err == nil {
		w.a.Claim = m.Claim // what is put back, if anything has to be, is put back from here
	}
	return err
}

func (w *owning) heed(signals *supervise.Signals) error {
	sig, _ := signals.Heed(func() error { return nil })
	if sig != nil {
		return clikit.Interrupted(sig)
	}
	return nil
}

func (w *owning) mark(m fence.Mark) (*fence.Marked, error) {
	return fence.MarkTicket(context.Background(), w.o.ticket, m, w.s.options())
}

func (w *owning) putBack() error { return w.f.PutBack(context.Background(), w.a) }

// opened marks that the command has begun, which may have opened storage. A mark that is refused because the claim is no longer
// this owner's is a loss. One that could not be made, on a full disk or behind a transaction that was cut off, is none: the claim
// stays leased, which is judged alike, and the end tries again.
func (w *owning) opened() {
	if w.o.native == nativeChild {
		return
	}
	_, err := w.mark(fence.Mark{To: fence.StorageOpen, Attempt: true})
	if w.open = err == nil; err != nil && contradicts(err) {
		w.lost <- err
	}
}

func (w *owning) hold() supervise.Hold {
	if w.native != nil {
		go w.pass(w.native)
	}
	go w.watch()
	return supervise.Hold{
		Lost: w.lost,
		Check: func() {
			if w.native != nil {
				_ = w.native.Check() // a loss is told on Lost
			}
		},
		Grace: func(error) time.Duration { return endingGrace },
		Note:  func(string, int) {},
	}
}

// watchEvery is how often the hold file is looked at.
const watchEvery = time.Second

// watch looks whether the hold file is still the one that this run has locked: it is never removed or replaced, so that
// somebody who did has opened the directory to others.
func (w *owning) watch() {
	for range time.Tick(watchEvery) {
		if err := w.a.CheckHold(); err != nil {
			select {
			case w.lost <- err:
			default: // there is a loss already
			}
			return
		}
	}
}

// pass passes on the loss of the native lease.
func (w *owning) pass(native *fence.NativeHold) {
	err := native.Wait()
	if err == nil {
		return
	}
	select {
	case w.lost <- err:
	default: // there is a loss already
	}
}

// conflicting gives a refusal that is about another owner the status that was asked for.
func (o *runOptions) conflicting(err error) error {
	switch clikit.CodeOf(err) {
	case fence.CodeOwnerLive, fence.CodeOwnerUncertain, fence.CodeOwnerOtherHost, fence.CodeLegacyLease, fence.CodeLeaseUnattributed, fence.CodeTxHeld:
		return clikit.Exiting(o.conflict, err)
	}
	return err
}

func (w *owning) close() {
	if w.a != nil {
		w.a.Close()
	}
	if w.f != nil {
		w.f.Close()
	}
}

// releaseNative gives the native lease back, if run has it.
func (w *owning) releaseNative() error {
	if w.native == nil {
		return nil
	}
	native := w.native
	w.native = nil
	return native.Release()
}

// neverOpened records the end of a run whose command could not be executed: that was no attempt to open anything.
func (w *owning) neverOpened() error {
	released := w.releaseNative()
	m := fence.Mark{To: fence.Closed, Storage: fence.NeverOpened}
	if released != nil {
		m = fence.Mark{To: fence.CloseFailed, Storage: fence.NeverOpened, Lease: fence.Failed, Cause: released.Error()}
	}
	_, err := w.mark(m)
	return errors.Join(released, err, os.Remove(w.o.ticket))
}

// end settles what a run leaves behind, and its exit status.
func (w *owning) end(c *clikit.Call, r supervise.Result) error {
	released := w.releaseNative()
	var native *fence.LeaseLostError
	if errors.As(released, &native) && r.Lost == nil {
		r.Lost = released
	}
	refused := w.record(r, released)
	if refused == nil {
		_ = os.Remove(w.o.ticket)
	}
	switch {
	case r.Lost != nil:
		return clikit.Exiting(statusLost, lostError(r))
	case refused != nil && contradicts(refused):
		return clikit.Exiting(statusLost, fmt.Errorf("the session was taken away while the command ran: %w; the command had ended by itself "+
			"with status %d; status 124 is fencectl's own", refused, r.Status))
	case refused != nil:
		c.Warn("the end was not recorded; the next owner will find this one dead: %v", refused)
	}
	if released != nil {
		c.Warn("the native lease was not released: %v", released)
	}
	if r.Leftover > 0 {
		c.Warn("still running: %d of the command's processes; while one of them has the hold open nobody else is admitted to %s", r.Leftover, w.f.Selected())
	}
	c.Exit(r.Status)
	if r.Signal != 0 {
		c.ExitBy(r.Signal)
	}
	return nil
}

// record writes the end into the claim. Of a command that marks its own states, it ends what that left open.
func (w *owning) record(r supervise.Result, released error) error {
	m := endMark(r, released)
	if w.o.native != nativeChild && !w.open {
		if _, err := w.mark(fence.Mark{To: fence.StorageOpen, Attempt: true}); err != nil {
			return err // why it could not be recorded at the start, a full disk for one, may have gone meanwhile
		}
	}
	if w.o.native == nativeChild {
		st, err := w.f.Show()
		if err != nil {
			return err
		}
		done, left := leftOpen(st.Claim, w.a.Claim.Owner)
		if done {
			return nil
		}
		m = left
	}
	_, err := w.mark(m)
	return err
}

// leftOpen is the mark that ends what a command left open that marks its own states; done when it has ended it itself. The
// end of another owner is not this one's: the mark is refused then.
func leftOpen(c *fence.Claim, owner procid.Identity) (done bool, m fence.Mark) {
	switch {
	case c == nil:
	case (c.State == fence.Closed || c.State == fence.CloseFailed) && c.Owner == owner:
		return true, m
	case c.State == fence.Fenced:
		return false, fence.Mark{To: fence.Closed, Storage: fence.NeverOpened}
	}
	return false, fence.Mark{To: fence.CloseFailed, Cause: "the command ended without marking its end"}
}

// endMark decides how a run has ended: closed when the command called exit, with any status, and nothing of it is left.
func endMark(r supervise.Result, released error) fence.Mark {
	m := fence.Mark{To: fence.Closed, Storage: fence.StorageClosed}
	switch {
	case r.Lost != nil:
		m = fence.Mark{To: fence.CloseFailed, Storage: fence.StorageUnknown, Cause: "the hold was lost: " + r.Lost.Error()}
	case r.Signal != 0:
		m = fence.Mark{To: fence.CloseFailed, Storage: fence.StorageUnknown, Cause: fmt.Sprintf("the command was ended by signal %d", int(r.Signal))}
	case r.Leftover > 0:
		m = fence.Mark{To: fence.CloseFailed, Storage: fence.StorageUnknown, Cause: fmt.Sprintf("left running: %d of the command's processes", r.Leftover)}
	}
	if released != nil {
		m.To, m.Lease = fence.CloseFailed, fence.Failed
		if m.Cause == "" {
			m.Cause = "the native lease was not released: " + released.Error()
		}
	}
	return m
}

// contradicts reports whether a refused mark says that somebody else has had the session, or may have.
func contradicts(err error) bool {
	switch clikit.CodeOf(err) {
	case fence.CodeGenerationMismatch, fence.CodeClaimMissing, fence.CodeResourceMismatch, fence.CodeTransitionInvalid,
		fence.CodeClaimUnreadable, fence.CodeSchemaNewer, "directory-invalid", "not-regular":
		return true
	}
	return false
}

// lostError is the loss with what became of the command.
func lostError(r supervise.Result) error {
	if r.Leftover > 0 {
		return fmt.Errorf("the hold was lost: %w; %d of the command's processes could not be ended; status 124 is fencectl's own", r.Lost, r.Leftover)
	}
	return fmt.Errorf("the hold was lost: %w; the command was ended; status 124 is fencectl's own", r.Lost)
}
