package leasectl

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"holdfast/internal/clikit"
	"holdfast/pkg/lease"
	"holdfast/pkg/regfile"
)

func listVerb(s *session) *clikit.Verb {
	var fleet string
	return &clikit.Verb{
		Name:  "list",
		Usage: "show every lease of the fleet",
		Description: `One object for each NAME.lock in the fleet's state directory, as status prints it. A lease that
cannot be trusted is listed too, and makes the status 65.

Example: the names of the leases that are held

   leasectl list | jq -r 'select(.code == "held").name'`,
		Flags: []cli.Flag{
			clikit.TextFlag("fleet", "the fleet's `DIR`", ".", &fleet),
		},
		Objects: []clikit.Object{&statusObject{}},
		Lists:   true,
		Run:     func(c *clikit.Call) error { return s.list(c, fleet) },
	}
}

func (s *session) list(c *clikit.Call, fleet string) error {
	if fleet == "" {
		fleet = "."
	}
	names, err := s.leases(fleet)
	if err != nil {
		return err
	}
	for _, name := range names {
		store, err := s.open(target{fleet: fleet, name: name}, lease.Options{})
		if err != nil {
			return err
		}
		object := s.look(store)
		store.Close()
		switch o := object.(type) {
		case *statusObject:
			o.Name = name
		case *refusal:
			o.Name = name
		}
		if err := c.Emit(object); err != nil {
			return err
		}
	}
	return nil
}

// leases are the names of the fleet's lease files, sorted. Only the exact form counts: copies with other names are no
// leases.
func (s *session) leases(fleet string) ([]string, error) {
	if hasNoState(fleet) {
		return nil, nil
	}
	s.lock, s.inFleet = filepath.Join(fleet, "state", defaultName+lockSuffix), true
	dir, err := regfile.OpenDir(filepath.Dir(s.lock))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.Names()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry, lockSuffix)
		if ok && namePattern.MatchString(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}
