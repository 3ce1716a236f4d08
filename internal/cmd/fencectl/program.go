// Package fencectl is the program of that name: the owner fence of package fence as verbs.
package fencectl

import (
	"github.com/urfave/cli/v2"

	"holdfast/internal/claimview"
	"holdfast/internal/clikit"
	"holdfast/pkg/fence"
)

// Main runs fencectl and returns its exit status.
func Main(env clikit.Env) int { return Program().Main(env) }

// Program describes the program.
func Program() *clikit.Program {
	s := &session{}
	p := &clikit.Program{
		Name:  "fencectl",
		Usage: "the owner fence: may this process open this session directory, and did the last owner end cleanly?",
		Description: `One owner per session directory. The owner's claim is one JSON file in the directory; it stays when the
owner is gone, and says how far it got and how it ended. Only an owner that is proven dead is taken over.

Example: run an agent as the owner of its session directory

   fencectl run --dir sessions/s1 --create -- my-agent --resume

What keeps somebody out, and what would have to change

   fencectl explain --dir sessions/s1`,
		Refusal: &refusal{},
		Refuse:  func(_ string, err error) clikit.Object { return s.refusal(err) },
	}
	p.Before = func(c *clikit.Call) { s.progress.Line = c.ProgressLine() }
	p.Verbs = []*clikit.Verb{
		runVerb(s), admitVerb(s), markVerb(s), showVerb(s), explainVerb(s),
		enrollVerb(s), reserveVerb(s), withdrawVerb(s), observeVerb(s),
		breakVerb(s), leaseVerb(s), txVerb(s), setAsideVerb(s),
		clikit.SchemaVerb(p, "show"),
	}
	return p
}

// session is one start of the program: which directory it is about, for the commands that refusals print.
type session struct {
	progress claimview.Progress

	dir    string
	ticket string
	garden fence.Garden // when the verb is about one
}

// target says which session directory a verb is about.
type target struct{ dir string }

func (t *target) flags() []cli.Flag {
	return []cli.Flag{clikit.TextFlag("dir", "the session `DIR`ectory", "", &t.dir)}
}

// open opens the session directory.
func (s *session) open(t target, create bool) (*fence.Fence, error) {
	if t.dir == "" {
		return nil, clikit.Usagef("which session directory? give --dir DIR")
	}
	s.dir = t.dir
	return fence.Open(t.dir, create, s.options())
}

// options are those of every operation: a wait shows on the terminal.
func (s *session) options() fence.Options {
	return fence.Options{Tool: "fencectl", Waiting: s.progress.Waiting}
}

// flag is the directory as a command line names it.
func (s *session) flag() string { return "--dir " + clikit.Quote(s.dir) }
