package leasectl

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"holdfast/internal/clikit"
	"holdfast/pkg/atomicfile"
	"holdfast/pkg/lease"
	"holdfast/pkg/regfile"
)

// session is one start of the program: which lock it is about, for the commands that refusals print.
type session struct {
	lock      string
	inFleet   bool // the lock's name is made from a fleet's directory
	acquiring bool
	running   []string // of run: its command line, to be given again
	events    string   // the events file, when that is what a refusal may be about
}

// target says which lease a verb is about.
type target struct {
	fleet string
	name  string
	lock  string
}

const (
	defaultName = "orchestrator"
	lockSuffix  = ".lock"
)

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func (t *target) flags() []cli.Flag {
	return []cli.Flag{
		clikit.TextFlag("fleet", "the fleet's `DIR`; its leases are in DIR/state. Give it always in cron and systemd, whose current directory is another", ".", &t.fleet),
		clikit.TextFlag("name", "the lease's `NAME` in the fleet", defaultName, &t.name),
		clikit.TextFlag("lock", "the lease file's `PATH`, instead of a fleet and a name", "", &t.lock),
	}
}

// path is the lease file's path, and the fleet's directory when one is meant.
func (t *target) path() (path, fleet string, err error) {
	if t.lock != "" {
		if t.fleet != "" || t.name != "" {
			return "", "", clikit.Usagef("--lock names the lease file by itself; leave --fleet and --name out")
		}
		if base := filepath.Base(t.lock); strings.HasSuffix(t.lock, "/") || base == "." || base == ".." || base == "/" {
			return "", "", clikit.Usagef("--lock %s names no file", regfile.Printable(t.lock))
		}
		for _, suffix := range []string{".mutex", ".stage", ".journal"} {
			if lock, beside := strings.CutSuffix(t.lock, suffix); beside {
				return "", "", clikit.Usagef("--lock %s is a file beside the lease file %s; give that one", regfile.Printable(t.lock), regfile.Printable(lock))
			}
		}
		return t.lock, "", nil
	}
	name, fleet := t.name, t.fleet
	if name == "" {
		name = defaultName
	}
	if fleet == "" {
		fleet = "."
	}
	if !namePattern.MatchString(name) {
		return "", "", clikit.Usagef("--name %q must be 1 to 64 letters, digits, dots, dashes and underscores, a letter or digit first", name)
	}
	return filepath.Join(fleet, "state", name+lockSuffix), fleet, nil
}

// orEnvironment makes $LEASE_LOCK the target when the command line names none, so that a hook works from any directory.
func (t target) orEnvironment() target {
	if t == (target{}) {
		t.lock = os.Getenv("LEASE_LOCK")
	}
	return t
}

// open opens the store to look at or change an existing lease. A fleet without a state directory has no leases.
func (s *session) open(t target, opts lease.Options) (*lease.Store, error) {
	path, fleet, err := t.path()
	if err != nil {
		return nil, err
	}
	s.lock, s.inFleet = path, fleet != ""
	opts.Tool, opts.KnownAs = "leasectl", absolute(path)
	opts.AllowMissing = fleet != "" && hasNoState(fleet)
	return lease.Open(path, opts)
}

// hasNoState reports whether the fleet's directory is there and its state directory is not.
func hasNoState(fleet string) bool {
	if st, err := os.Stat(fleet); err != nil || !st.IsDir() {
		return false
	}
	_, err := os.Lstat(filepath.Join(fleet, "state"))
	return errors.Is(err, fs.ErrNotExist)
}

// create opens the store for an acquire: a fleet's state directory is created.
func (s *session) create(t target, opts lease.Options) (*lease.Store, error) {
	s.acquiring = true
	path, fleet, err := t.path()
	if err != nil {
		return nil, err
	}
	if fleet != "" && hasNoState(fleet) {
		if err := atomicfile.Mkdir(filepath.Dir(path)); err != nil {
			s.lock, s.inFleet = path, true
			return nil, err
		}
	}
	return s.open(t, opts)
}

// durationFlag is --duration; def is what the help says of leaving it out.
func durationFlag(into *time.Duration, def string) cli.Flag {
	return clikit.DurationFlag("duration", "how `LONG` the lease lasts from now: 15m, 900s, 2d or plain seconds, 1s to 30 days"+def, into,
		lease.MinDuration, lease.MaxDuration)
}
