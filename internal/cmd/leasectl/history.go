package leasectl

import (
	"time"

	"github.com/urfave/cli/v2"

	"holdfast/internal/clikit"
	"holdfast/pkg/lease"
)

type historyOptions struct {
	target
	limit int
}

func historyVerb(s *session) *clikit.Verb {
	var o historyOptions
	return &clikit.Verb{
		Name:  "history",
		Usage: "show the journal: who held the lease before",
		Description: `Oldest first. The last line carries unconfirmed when the lease file says something else: the mutation
was cut off, or another program changed the lease since. As text it is a time line: one row for each holder, solid as
far as the holder gave signs of life.

Example: the last five holders

   leasectl history | jq -r 'select(.entry.op | IN("acquired", "taken-over")).entry.holderId' | tail -5`,
		Flags: append(o.flags(),
			&cli.IntFlag{Name: "limit", Usage: "only the last `N` lines; as text, the last N holders", Destination: &o.limit, DefaultText: "all"}),
		Objects: []clikit.Object{&historyObject{}},
		Lists:   true,
		Run:     func(c *clikit.Call) error { return s.history(c, o) },
	}
}

// historyObject is one journal line.
type historyObject struct {
	clikit.Head
	Entry       lease.Entry `json:"entry"`
	Void        bool        `json:"void,omitzero"`        // its fence token does not exceed one before it
	Unconfirmed bool        `json:"unconfirmed,omitzero"` // the last line, and the lease file says something else
}

// Text is empty: as text the history is a timeline.
func (o *historyObject) Text() string { return "" }

func (s *session) history(c *clikit.Call, o historyOptions) error {
	if o.limit < 0 {
		return clikit.Usagef("--limit must not be negative")
	}
	store, err := s.open(o.target, lease.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	h, err := store.History()
	if err != nil {
		return err
	}
	if h.Unreadable > 0 {
		c.Warn("%d unreadable lines of the journal are left out", h.Unreadable)
	}
	if c.Textual() {
		rows := lastOf(o.limit, tenures(h.Records))
		return c.Emit(&timeline{Head: clikit.Done("entry"), tenures: rows, width: clikit.Width(1), now: time.Now()})
	}
	for _, r := range lastOf(o.limit, h.Records) {
		object := &historyObject{Head: clikit.Done("entry"), Entry: r.Entry, Void: r.Void, Unconfirmed: r.Unconfirmed}
		if err := c.Emit(object); err != nil {
			return err
		}
	}
	return nil
}

// lastOf is the end of a list, n long at most; 0 is no limit.
func lastOf[T any](n int, list []T) []T {
	if n > 0 && len(list) > n {
		return list[len(list)-n:]
	}
	return list
}
