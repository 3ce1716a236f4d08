package leasectl

import (
	"context"
	"fmt"
	"unicode/utf8"

	"holdfast/internal/clikit"
	"holdfast/pkg/lease"
)

func watchVerb(s *session) *clikit.Verb {
	var t target
	return &clikit.Verb{
		Name:  "watch",
		Usage: "show every change of the lease, until interrupted",
		Description: `One status object when it starts, and one for each change of the state, the holder or the fence token; a
renewal is no change. On a terminal it is a live line with the holder, the label and the time left. It ends, in silence, by the
signal that interrupts it, and when nobody reads its output any more. Without --lock, --fleet and --name it takes $LEASE_LOCK.

Example: tell a chat about every new holder

   leasectl watch | jq --unbuffered -r 'select(.code == "held").lease.label' | ./announce`,
		Flags:   t.flags(),
		Objects: []clikit.Object{&statusObject{}},
		Lists:   true,
		Mutates: true,
		Run:     func(c *clikit.Call) error { return s.watch(c, t) },
	}
}

func (s *session) watch(c *clikit.Call, t target) error {
	store, err := s.open(t.orEnvironment(), lease.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	line := clikit.DisplayLine()
	defer line.End()
	live := c.Textual() && line.Live()
	shown := ""
	ctx, stop := clikit.WhileRead(c.Context)
	defer stop()
	err = store.Watch(ctx, func() error {
		object := s.look(store)
		if live {
			line.Show("%s", glance(object, line.Room()))
			return nil
		}
		if key := changeKey(object); key != shown {
			shown = key
			return c.Emit(object)
		}
		return nil
	})
	if sig := clikit.InterruptOf(context.Cause(c.Context)); sig != 0 {
		c.ExitBy(sig) // in silence: it is how watching ends, and whatever was shown is no failure of it
		return nil
	}
	if ctx.Err() != nil {
		return nil // its reader has gone
	}
	return err
}

// changeKey is what makes two looks at a lease different.
func changeKey(o clikit.Object) string {
	switch o := o.(type) {
	case *statusObject:
		if l := o.status.Lease; l != nil {
			return fmt.Sprint(o.Code, l.HolderID, l.Fence)
		}
		return o.Code
	case *refusal:
		return o.Code + " " + o.Fingerprint
	}
	return ""
}

// glance is a look at a lease in one line: what changes and who it is first, the id last.
func glance(o clikit.Object, room int) string {
	switch o := o.(type) {
	case *statusObject:
		l := o.status.Lease
		if l == nil {
			return o.Code
		}
		before := "held " + left(o.status.Remaining)
		if o.status.State != lease.StateHeld {
			before = "expired " + left(-o.status.Remaining) + " ago"
		}
		after := onHost("  on ", l)
		if l.Fence > 0 {
			after += fmt.Sprintf("  fence %d", l.Fence)
		}
		text := fit(room, before+"  ", callName(l), after)
		if id := "  " + shortID(l); l.Label != "" && utf8.RuneCountInString(text+id) <= room {
			text += id
		}
		return text
	case *refusal:
		return o.Code + "  " + o.Reason
	}
	return ""
}
