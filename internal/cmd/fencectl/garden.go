package fencectl

import (
	"context"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"holdfast/internal/clikit"
	"holdfast/pkg/fence"
	"holdfast/pkg/regfile"
)

// gardenOptions address a citizen.
type gardenOptions struct{ id, root string }

func (o *gardenOptions) flags() []cli.Flag {
	return []cli.Flag{
		clikit.TextFlag("garden", "the citizen's garden `ID`, YYYYMMDDTHHMMSS-xxxxxx", "none", &o.id),
		clikit.TextFlag("meta-root", "the `DIR` that has its record", "none", &o.root),
	}
}

// openGarden is the garden that the flags name.
func (s *session) openGarden(o gardenOptions) (fence.Garden, error) {
	if o.id == "" || o.root == "" {
		return fence.Garden{}, clikit.Usagef("which citizen? give --garden ID and --meta-root DIR")
	}
	root, err := filepath.Abs(o.root)
	if err != nil {
		return fence.Garden{}, regfile.IOError("resolve", o.root, err)
	}
	s.garden = fence.Garden{ID: o.id, MetaRoot: root}
	return s.garden, nil
}

// adoptOptions name the reservation to adopt.
type adoptOptions struct{ garden, root, generation string }

func (o *adoptOptions) flags() []cli.Flag {
	return []cli.Flag{
		clikit.TextFlag("adopt-garden", "adopt the reservation of the citizen with this garden `ID`", "none", &o.garden),
		clikit.TextFlag("meta-root", "with --adopt-garden: the `DIR` that has its record", "none", &o.root),
		clikit.TextFlag("adopt-generation", "with --adopt-garden: the reservation's `GENERATION`, as reserve printed it", "none", &o.generation),
	}
}

// asked reports whether a reservation is to be adopted: one of the flags is enough, so that a missing one is no ordinary
// admission.
func (o *adoptOptions) asked() bool { return *o != adoptOptions{} }

// adopt takes exactly that reservation over.
func (s *session) adopt(ctx context.Context, o admitOptions, request fence.Request) (*fence.Fence, *fence.Admission, error) {
	switch {
	case o.adopt.garden == "" || o.adopt.root == "" || o.adopt.generation == "":
		return nil, nil, clikit.Usagef("a reservation is adopted with all of --adopt-garden, --meta-root and --adopt-generation")
	case o.create:
		return nil, nil, clikit.Usagef("--create goes without --adopt-garden: a reserved directory is there")
	case o.dir == "":
		return nil, nil, clikit.Usagef("which session directory? give --dir DIR")
	}
	s.dir = o.dir
	g, err := s.openGarden(gardenOptions{o.adopt.garden, o.adopt.root})
	if err != nil {
		return nil, nil, err
	}
	return fence.Adopt(ctx, fence.Adoption{
		Request: request, Directory: o.dir, Garden: g, Generation: o.adopt.generation,
	}, s.options())
}
