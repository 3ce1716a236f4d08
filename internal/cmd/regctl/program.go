// Package regctl is the program of that name: the service registry of package registry as verbs.
package regctl

import (
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"holdfast/internal/claimview"
	"holdfast/internal/clikit"
	"holdfast/internal/supervise"
	"holdfast/pkg/registry"
)

// Main runs regctl and returns its exit status.
func Main(env clikit.Env) int {
	supervise.Jump() // run starts its command through this very program
	return Program().Main(env)
}

// Program describes the program.
func Program() *clikit.Program {
	s := &session{}
	p := &clikit.Program{
		Name:  "regctl",
		Usage: "the service registry: which service owns this root and this loopback endpoint, and how does a client reach it?",
		Description: `One service per root directory and per loopback endpoint. A service acquires both before it serves, its
clients ask for the endpoint and the capability to talk to it, and two services whose roots overlap are refused.

Example: run a service under the registry, with a port that nobody else has

   regctl run --root . --endpoint http://127.0.0.1:0 -- my-service

A service that registers itself, and a client that finds it

   regctl acquire --root . --endpoint http://127.0.0.1:4100 --owner-pid $$ --receipt /run/user/1000/my.receipt
   regctl access --root . | jq -r .endpoint
   regctl release --receipt /run/user/1000/my.receipt`,
		Refusal: &refusal{},
		Refuse:  func(op string, err error) clikit.Object { return s.refusal(op, err) },
	}
	p.Before = func(c *clikit.Call) { s.progress.Line = c.ProgressLine() }
	p.Verbs = []*clikit.Verb{
		runVerb(s), initVerb(s), acquireVerb(s), phaseVerb(s), releaseVerb(s), assertVerb(s),
		inspectVerb(s), listVerb(s), accessVerb(s), recoverVerb(s), repairVerb(s),
		clikit.SchemaVerb(p, "inspect"),
	}
	return p
}

// session is one start of the program: what it is about, for the commands that refusals print.
type session struct {
	progress claimview.Progress

	root string
	home string // as it was given; empty for the default
}

// homeOptions say which state home is meant.
type homeOptions struct{ home string }

func (o *homeOptions) flags() []cli.Flag {
	return []cli.Flag{clikit.TextFlag("state-home", "the `DIR` that keeps the registry", "$HOLDFAST_STATE_HOME, $XDG_STATE_HOME/holdfast or ~/.local/state/holdfast", &o.home)}
}

// path is the state home that the flags or the environment name.
func (o *homeOptions) path() (string, error) {
	switch {
	case o.home != "":
		return o.home, nil
	case os.Getenv("HOLDFAST_STATE_HOME") != "":
		return os.Getenv("HOLDFAST_STATE_HOME"), nil
	case filepath.IsAbs(os.Getenv("XDG_STATE_HOME")):
		return filepath.Join(os.Getenv("XDG_STATE_HOME"), "holdfast"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return "", clikit.Usagef("where is the registry? $HOME is not set: give --state-home DIR")
	}
	return filepath.Join(home, ".local", "state", "holdfast"), nil
}

func (s *session) open(o homeOptions) (*registry.Home, error) {
	path, err := o.path()
	if err != nil {
		return nil, err
	}
	s.home = o.home
	return registry.Open(path, s.options())
}

// options are those of every operation: a wait shows on the terminal.
func (s *session) options() registry.Options {
	return registry.Options{Tool: "regctl", Waiting: s.progress.Waiting}
}

// rootOptions say which root is meant.
type rootOptions struct {
	homeOptions
	root string
}

func (o *rootOptions) flags() []cli.Flag {
	return append(o.homeOptions.flags(), clikit.TextFlag("root", "the service's root `DIR`ectory", "none", &o.root))
}

func noRoot() error { return clikit.Usagef("which root? give --root DIR") }

func (s *session) openRoot(o rootOptions) (*registry.Home, error) {
	if o.root == "" {
		return nil, noRoot()
	}
	s.root = o.root
	return s.open(o.homeOptions)
}

// flags are the session's own, for a command line.
func (s *session) flags() string {
	text := ""
	if s.home != "" {
		text += " --state-home " + clikit.Quote(s.home)
	}
	if s.root != "" {
		text += " --root " + clikit.Quote(s.root)
	}
	return text
}
