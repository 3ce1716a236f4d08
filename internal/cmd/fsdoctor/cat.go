package fsdoctor

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"holdfast/internal/clikit"
	"holdfast/pkg/doctor"
	"holdfast/pkg/regfile"
)

func catVerb() *clikit.Verb {
	limit := int64(regfile.DefaultLimit)
	var patience time.Duration
	return &clikit.Verb{
		Name:  "cat",
		Usage: "print a regular file, or refuse",
		Args:  "PATH",
		Description: `The bytes go to standard output as they are, whole or not at all; a refusal is an object on standard
error. The last symlink is not followed.

Example: read a file that may be a named pipe by now

   fsdoctor cat state/orchestrator.lock | jq .holderId`,
		Flags:     []cli.Flag{clikit.SizeFlag("max", "the largest `SIZE` that is read", &limit, 1<<30), probeFlag(&patience)},
		RawOutput: true,
		Run:       func(c *clikit.Call) error { return cat(c, limit, patience) },
	}
}

func cat(c *clikit.Call, limit int64, patience time.Duration) error {
	if len(c.Args) != 1 {
		return clikit.Usagef("give one path; try 'fsdoctor cat --help'")
	}
	path := strings.TrimRight(c.Args[0], "/")
	if path == "" {
		return clikit.Usagef("%q names no file", c.Args[0])
	}
	type result struct {
		bytes []byte
		err   error
	}
	read := make(chan result, 1)
	if lost := doctor.NewGuard(forSize(patience, limit)).Do(path, func(func(string)) {
		b, err := bytesOf(path, limit)
		read <- result{b, err}
	}); lost != nil {
		return silent{&regfile.Error{Code: doctor.Unresponsive, Path: path}}
	}
	r := <-read
	if r.err != nil {
		return r.err
	}
	return clikit.WriteBytes(r.bytes)
}

// forSize gives a file that may be large the time to be read.
func forSize(patience time.Duration, limit int64) time.Duration {
	const chunk = 64 << 20 // bytes, for each of which the patience is given once more
	if patience == 0 {
		patience = doctor.DefaultPatience
	}
	return patience + patience*time.Duration(limit/chunk)
}

func bytesOf(path string, limit int64) ([]byte, error) {
	dir, err := regfile.OpenDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	snap, err := dir.Read(filepath.Base(path), limit)
	if err != nil {
		return nil, err
	}
	return snap.Bytes, nil
}

// silent is a path whose filesystem does not answer.
type silent struct{ file *regfile.Error }

func (e silent) Error() string {
	return regfile.Printable(e.file.Path) + ": its filesystem does not answer"
}

func (e silent) ErrorCode() string { return e.file.Code }

func (e silent) Unwrap() error { return e.file }
