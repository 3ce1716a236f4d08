package fsdoctor

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"holdfast/internal/clikit"
	"holdfast/pkg/regfile"
)

// longestPath bounds one path read from standard input, in bytes; the kernel takes 4096.
const longestPath = 64 << 10

func classifyVerb() *clikit.Verb {
	var nul bool
	return &clikit.Verb{
		Name:  "classify",
		Usage: "say what each path is, without opening it",
		Args:  "[PATH… | -]",
		Description: `One object for each path; its code is the kind. The last symlink is not followed, but where it leads
is told. With -, or without a path, the paths come from standard input, one in a line.

Example: every named pipe below a directory

   find state -print0 | fsdoctor classify -0 | jq -r 'select(.kind == "fifo").path'`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "0", Usage: "paths on standard input end with a NUL instead of a newline", Destination: &nul, DisableDefaultText: true},
		},
		Objects: []clikit.Object{&entryObject{}},
		Lists:   true,
		Run:     func(c *clikit.Call) error { return classify(c, nul) },
	}
}

// entryObject is what a path is.
type entryObject struct {
	clikit.Head
	clikit.Location
	Kind           string  `json:"kind"`
	Size           *int64  `json:"size,omitzero"` // bytes
	Mode           string  `json:"mode,omitzero"` // octal permission bits
	UID            *uint32 `json:"uid,omitzero"`
	GID            *uint32 `json:"gid,omitzero"`
	Nlink          uint64  `json:"nlink,omitzero"`
	Mtime          string  `json:"mtime,omitzero"`
	Target         string  `json:"target,omitzero"` // a symlink's text
	TargetBytes    []byte  `json:"targetBytes,omitzero"`
	ResolvesTo     string  `json:"resolvesTo,omitzero"`     // where a symlink ends; left out when it ends nowhere
	ResolvesToKind string  `json:"resolvesToKind,omitzero"` // absent when it dangles
	Reason         string  `json:"reason,omitzero"`         // why it is unexaminable
}

// Text is the kind and the path.
func (o *entryObject) Text() string {
	text := fmt.Sprintf("%-12s  %s", o.Kind, regfile.Printable(o.Path))
	if o.Target != "" {
		text += " -> " + regfile.Printable(o.Target) + " (" + o.ResolvesToKind + ")"
	}
	if o.Reason != "" {
		text += ": " + o.Reason
	}
	return text
}

func newEntry(e regfile.Entry) *entryObject {
	st := e.Stamp
	o := &entryObject{Head: clikit.Done(string(st.Kind)), Location: clikit.At(e.Path), Kind: string(st.Kind)}
	if st.Kind == regfile.Absent {
		return o
	}
	if e.Err != nil {
		o.Reason = e.Err.Error()
		return o
	}
	o.Size, o.UID, o.GID, o.Nlink = &st.Size, &st.UID, &st.GID, st.Nlink
	o.Mode = fmt.Sprintf("%04o", st.Perm())
	o.Mtime = st.Mtime.UTC().Format("2006-01-02T15:04:05.000Z")
	o.Target, o.ResolvesTo, o.ResolvesToKind = e.Target, e.ResolvesTo, string(e.ResolvesKind)
	if !utf8.ValidString(e.Target) {
		o.TargetBytes = []byte(e.Target)
	}
	return o
}

func classify(c *clikit.Call, nul bool) error {
	emit := func(path string) error { return c.Emit(newEntry(regfile.Classify(path))) }
	if len(c.Args) == 0 || len(c.Args) == 1 && c.Args[0] == "-" {
		if len(c.Args) == 0 && clikit.IsTerminal(0) {
			return clikit.Usagef("a path is missing; try 'fsdoctor classify --help'")
		}
		return eachPath(os.Stdin, nul, emit)
	}
	for _, path := range c.Args {
		if path == "" {
			return clikit.Usagef("an empty path names nothing")
		}
		if err := emit(path); err != nil {
			return err
		}
	}
	return nil
}

// eachPath calls f for each path in a list, as soon as it is read.
func eachPath(r io.Reader, nul bool, f func(path string) error) error {
	end := byte('\n')
	if nul {
		end = 0
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 4096), longestPath)
	lines.Split(func(data []byte, eof bool) (int, []byte, error) {
		if i := bytes.IndexByte(data, end); i >= 0 {
			return i + 1, data[:i], nil
		}
		if eof && len(data) > 0 {
			return len(data), data, nil
		}
		return 0, nil, nil
	})
	for lines.Scan() {
		if lines.Text() == "" {
			continue
		}
		if err := f(lines.Text()); err != nil {
			return err
		}
	}
	err := lines.Err()
	switch {
	case errors.Is(err, bufio.ErrTooLong):
		return pathTooLong{&regfile.Error{Code: regfile.CodeTooLarge, Path: "standard input", Limit: longestPath}}
	case err != nil:
		return regfile.IOError("read", "standard input", err)
	}
	return nil
}

// pathTooLong is a line of standard input that no path can be.
type pathTooLong struct{ file *regfile.Error }

func (e pathTooLong) Error() string {
	return fmt.Sprintf("%s has a path of more than %d bytes", e.file.Path, e.file.Limit)
}

func (e pathTooLong) ErrorCode() string { return e.file.Code }

func (e pathTooLong) Unwrap() error { return e.file }
