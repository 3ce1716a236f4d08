// Package leasectl is the program of that name: the fleet lease of package lease as verbs.
package leasectl

import (
	"holdfast/internal/clikit"
)

// Main runs leasectl and returns its exit status.
func Main(env clikit.Env) int { return Program().Main(env) }

// Program describes the program.
func Program() *clikit.Program {
	s := &session{}
	p := &clikit.Program{
		Name:  "leasectl",
		Usage: "the fleet lease: who may drive this fleet now, and until when?",
		Description: `One orchestrator at a time. The lease is one JSON file; it is held until it expires, and an
expired one is taken over only when that is asked for.

Example: hold the lease while a command runs

   leasectl run --take-over -- ./work

The same in steps

   eval "$(leasectl acquire --take-over --format sh)" || exit
   leasectl verify && ./work
   leasectl release --lock "$LEASE_LOCK" --holder "$LEASE_HOLDER"`,
		Refusal: &refusal{},
		Refuse:  func(_ string, err error) clikit.Object { return s.refusal(err) },
	}
	p.Verbs = []*clikit.Verb{
		runVerb(s), acquireVerb(s), renewVerb(s), releaseVerb(s), statusVerb(s), verifyVerb(s), waitVerb(s), watchVerb(s),
		listVerb(s), historyVerb(s),
		claimVerb(s), setAsideVerb(s),
		clikit.SchemaVerb(p, "status"),
	}
	return p
}
