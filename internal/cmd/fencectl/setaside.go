package fencectl

import (
	"holdfast/internal/clikit"
)

func setAsideVerb(s *session) *clikit.Verb {
	var t target
	var fingerprint string
	return &clikit.Verb{
		Name:  "set-aside",
		Usage: "move an unreadable owner claim out of the way",
		Description: `Moves exactly the broken claim with this fingerprint to entwurf-owner.json.broken-<8 hex digits>, with
all its bytes. A readable one is never moved. Who owned the directory is not known then: do it only when no owner can be
alive.

Example: the command that the refusal prints

   fencectl set-aside --dir sessions/s1 --fingerprint sha256:0f34…`,
		Flags:   append(t.flags(), clikit.TextFlag("fingerprint", "the broken claim's `FINGERPRINT`, as the refusal shows it", "none", &fingerprint)),
		Objects: []clikit.Object{&moved{}},
		Mutates: true,
		Run: func(c *clikit.Call) error {
			if fingerprint == "" {
				return clikit.Usagef("which claim? give --fingerprint; 'fencectl show' prints that of an unreadable one")
			}
			f, err := s.open(t, false)
			if err != nil {
				return err
			}
			defer f.Close()
			aside, err := f.SetAside(c.Context, fingerprint)
			if err != nil {
				return err
			}
			return c.Emit(&moved{Head: clikit.Done("set-aside"), Resource: f.Resource(), Fingerprint: fingerprint, MovedTo: aside})
		},
	}
}
