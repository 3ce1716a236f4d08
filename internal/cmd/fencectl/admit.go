package fencectl

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"holdfast/internal/clikit"
	"holdfast/pkg/fence"
	"holdfast/pkg/procid"
	"holdfast/pkg/regfile"
)

type admitOptions struct {
	target
	session  string
	profile  string
	create   bool
	ownerPID int
	ticket   string
	adopt    adoptOptions
}

// admissionFlags are the flags of admit that run has too.
func admissionFlags(o *admitOptions) []cli.Flag {
	return append(append(o.flags(), o.adopt.flags()...),
		clikit.TextFlag("session", "the session's `NAME`", "the directory's", &o.session),
		clikit.TextFlag("profile", "the profile `DIR` whose durable session this is", "none", &o.profile),
		&cli.BoolFlag{Name: "create", Usage: "make the directory when it is missing", Destination: &o.create, DisableDefaultText: true},
	)
}

func admitVerb(s *session) *clikit.Verb {
	var o admitOptions
	return &clikit.Verb{
		Name:  "admit",
		Usage: "make a process the owner of a session directory",
		Description: `Writes the owner claim, if nobody else owns the directory: its last owner has closed, or is proven dead.
The owner is named by its pid, in a shell $$. The ticket is a new file outside the directory; mark takes it.

Example: own a session in a script, to its end

   fencectl admit --dir sessions/s1 --owner-pid $$ --ticket /tmp/s1.ticket || exit
   fencectl mark leased --lease never-held --ticket /tmp/s1.ticket
   fencectl mark storage-attempt --ticket /tmp/s1.ticket
   ./open-the-transcript && fencectl mark storage-open --ticket /tmp/s1.ticket
   fencectl mark closed --ticket /tmp/s1.ticket && rm /tmp/s1.ticket`,
		Flags: append(admissionFlags(&o),
			&cli.IntFlag{Name: "owner-pid", Usage: "the owner's `PID`", Destination: &o.ownerPID, DefaultText: "none"},
			clikit.TextFlag("ticket", "the `FILE` to make for mark", "none", &o.ticket),
		),
		Objects: []clikit.Object{&claimed{}},
		Takes:   true,
		Mutates: true,
		Run:     func(c *clikit.Call) error { return s.admit(c, o) },
	}
}

func (o *admitOptions) request(owner procid.Identity) (fence.Request, error) {
	r := fence.Request{Session: o.session, Profile: o.profile, Owner: owner, Ticket: o.ticket}
	if r.Profile != "" {
		abs, err := filepath.Abs(r.Profile)
		if err != nil {
			return r, regfile.IOError("resolve", r.Profile, err)
		}
		r.Profile = abs
	}
	return r, nil
}

func (s *session) admit(c *clikit.Call, o admitOptions) error {
	switch {
	case o.dir == "":
		return clikit.Usagef("which session directory? give --dir DIR")
	case o.ownerPID == 0:
		return clikit.Usagef("who is the owner? give --owner-pid PID; in a shell script that is $$")
	case o.ticket == "":
		return clikit.Usagef("give --ticket FILE, a new file outside the session directory, for mark")
	case o.ownerPID == os.Getpid():
		return clikit.Usagef("--owner-pid %d is this very program, which ends in a moment; give the process that will own the session", o.ownerPID)
	}
	s.ticket = o.ticket
	owner, err := procid.Of(o.ownerPID)
	if err != nil {
		return err
	}
	request, err := o.request(owner)
	if err != nil {
		return err
	}
	f, a, err := s.enter(c.Context, o, request)
	if f != nil {
		defer f.Close()
	}
	if err != nil {
		return err
	}
	err = c.Emit(newClaimed(o.code(), f.Resource(), a.Claim, o.ticket, a.Warnings))
	if clikit.Undeliverable(err) {
		return giveBack(f, a, err)
	}
	return err
}

// enter admits by the table, or adopts when that is asked for. The fence is to be closed when there is one.
func (s *session) enter(ctx context.Context, o admitOptions, request fence.Request) (*fence.Fence, *fence.Admission, error) {
	if o.adopt.asked() {
		return s.adopt(ctx, o, request)
	}
	f, err := s.open(o.target, o.create)
	if err != nil {
		return nil, nil, err
	}
	a, err := f.Admit(ctx, request)
	return f, a, err
}

// code is the word for a success.
func (o *admitOptions) code() string {
	if o.adopt.asked() {
		return "adopted"
	}
	return "admitted"
}

// giveBack takes an admission back whose object reached nobody.
func giveBack(f *fence.Fence, a *fence.Admission, undelivered error) error {
	if err := f.PutBack(context.Background(), a); err != nil {
		return clikit.StillHeld(undelivered, err)
	}
	return fmt.Errorf("%w; the admission was taken back", undelivered)
}
