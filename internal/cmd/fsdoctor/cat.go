package fsdoctor

import (
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"holdfast/internal/clikit"
	"holdfast/pkg/regfile"
)

func catVerb() *clikit.Verb {
	limit := int64(regfile.DefaultLimit)
	return &clikit.Verb{
		Name:  "cat",
		Usage: "print a regular file, or refuse",
		Args:  "PATH",
		Description: `The bytes go to standard output as they are, whole or not at all; a refusal is an object on standard
error. The last symlink is not followed.

Example: read a file that may be a named pipe by now

   fsdoctor cat state/orchestrator.lock | jq .holderId`,
		Flags:     []cli.Flag{clikit.SizeFlag("max", "the largest `SIZE` that is read", &limit, 1<<30)},
		RawOutput: true,
		Run:       func(c *clikit.Call) error { return cat(c, limit) },
	}
}

func cat(c *clikit.Call, limit int64) error {
	if len(c.Args) != 1 {
		return clikit.Usagef("give one path; try 'fsdoctor cat --help'")
	}
	path := strings.TrimRight(c.Args[0], "/")
	if path == "" {
		return clikit.Usagef("%q names no file", c.Args[0])
	}
	dir, err := regfile.OpenDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	snap, err := dir.Read(filepath.Base(path), limit)
	if err != nil {
		return err
	}
	return clikit.WriteBytes(snap.Bytes)
}
