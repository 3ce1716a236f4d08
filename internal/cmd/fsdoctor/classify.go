package fsdoctor

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"holdfast/internal/clikit"
	"holdfast/pkg/doctor"
	"holdfast/pkg/regfile"
)

// longestPath bounds one path read from standard input, in bytes; the kernel takes 4096.
const longestPath = 64 << 10

func classifyVerb() *clikit.Verb {
	var nul bool
	var patience time.Duration
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
			probeFlag(&patience),
		},
		Objects: []clikit.Object{&entryObject{}},
		Lists:   true,
		Run:     func(c *clikit.Call) error { return classify(c, nul, patience) },
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

func classify(c *clikit.Call, nul bool, patience time.Duration) error {
	next, failed := paths(c.Args)
	if len(c.Args) == 0 || len(c.Args) == 1 && c.Args[0] == "-" {
		if len(c.Args) == 0 && clikit.IsTerminal(0) {
			return clikit.Usagef("a path is missing; try 'fsdoctor classify --help'")
		}
		next, failed = listed(os.Stdin, nul)
	} else if slices.Contains(c.Args, "") {
		return clikit.Usagef("an empty path names nothing")
	}
	k := &classifier{call: c, guard: doctor.NewGuard(patience, c.Args...)}
	err := doctor.Each(k.guard, next, func(path string) string { return path }, k.look, k.found, k.lost)
	return cmp.Or(err, failed())
}

// classifier looks at one path after the other.
type classifier struct {
	call  *clikit.Call
	guard *doctor.Guard
	link  atomic.Pointer[regfile.Entry] // the symlink whose end is looked at
}

// sight is an entry, and whether it is a link into something that has not answered before.
type sight struct {
	regfile.Entry
	hopeless bool
}

func (k *classifier) look(path string, _ func(string), follow func(link, leads string)) sight {
	e := regfile.Examine(path)
	if e.Target == "" {
		return sight{e, false}
	}
	leads := doctor.Leads(path, e.Target)
	if k.guard.HopelessLink(path, leads) {
		return sight{e, true}
	}
	link := e
	k.link.Store(&link)
	follow(path, leads)
	e.Follow()
	k.link.CompareAndSwap(&link, nil)
	return sight{e, false}
}

func (k *classifier) found(s sight) error {
	if s.hopeless {
		return k.call.Emit(unfollowed(s.Entry, "where it leads was not looked at: that has not answered before"))
	}
	return k.call.Emit(newEntry(s.Entry))
}

func (k *classifier) lost(l doctor.Lost) error {
	if link := k.link.Swap(nil); link != nil {
		return k.call.Emit(unfollowed(*link, "where it leads does not answer"))
	}
	return k.call.Emit(&entryObject{
		Head: clikit.Done(doctor.Unresponsive), Location: clikit.At(l.Path), Kind: string(regfile.Unexaminable), Reason: l.Detail(),
	})
}

// unfollowed is a symlink into something that does not answer.
func unfollowed(e regfile.Entry, reason string) *entryObject {
	e.ResolvesKind = regfile.Unexaminable
	o := newEntry(e)
	o.Code, o.Reason = doctor.Unresponsive, reason
	return o
}

// paths gives one path after the other.
func paths(list []string) (next func() (string, bool), failed func() error) {
	return func() (string, bool) {
		if len(list) == 0 {
			return "", false
		}
		path := list[0]
		list = list[1:]
		return path, true
	}, func() error { return nil }
}

// listed gives the paths of a list, each as soon as it is read. failed says, at the end, why there is no more.
func listed(r io.Reader, nul bool) (next func() (string, bool), failed func() error) {
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
	next = func() (string, bool) {
		for lines.Scan() {
			if lines.Text() != "" {
				return lines.Text(), true
			}
		}
		return "", false
	}
	return next, func() error { return unlisted(lines.Err()) }
}

func unlisted(err error) error {
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
