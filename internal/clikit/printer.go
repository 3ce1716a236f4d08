package clikit

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"
)

// Format is how objects are printed.
type Format string

// The formats. The default is Text on a terminal and JSON otherwise.
const (
	JSON  Format = "json"
	Text  Format = "text"
	Shell Format = "sh"
)

// printer writes objects to standard output and everything else to standard error.
type printer struct {
	tool     string
	op       string
	format   Format
	status   int      // the worst so far
	exports  []string // the variables that the verb gives to eval
	takes    bool     // the verb takes something that its object alone tells of
	replaces bool     // a refusal unsets the variables
	progress Line     // on standard error
	buffer   *buffer  // of a long listing; nil when each object is written at once
	observed func(line []byte)
}

// emit prints one object. The error is undeliverable.
func (p *printer) emit(o Object) error {
	h := o.head()
	h.Tool, h.Op = p.tool, p.op
	if !h.OK {
		p.status = max(p.status, StatusOf(h.Code))
	}
	p.comment(o)
	text, err := p.render(o)
	if err != nil {
		return err
	}
	if p.takes && h.OK && closedAtStart() {
		return &undeliverable{err: unix.EBADF}
	}
	p.progress.Clear()
	if p.buffer != nil {
		err = p.buffer.write(text)
	} else {
		err = write(text)
	}
	if err != nil {
		return &undeliverable{err: err}
	}
	return nil
}

// flush writes what a listing has kept back. The error is undeliverable.
func (p *printer) flush() error {
	if p.buffer == nil {
		return nil
	}
	if err := p.buffer.flush(); err != nil {
		return &undeliverable{err: err}
	}
	return nil
}

// comment says on standard error what a reader must not miss: a refusal's reason, a warning.
func (p *printer) comment(o Object) {
	if r, ok := o.(interface{ why() Why }); ok && !o.head().OK {
		p.say(r.why().Reason)
	}
	if w, ok := o.(interface{ warnings() []string }); ok {
		for _, text := range w.warnings() {
			p.say("warning: " + text)
		}
	}
}

func (p *printer) say(line string) {
	p.progress.Clear()
	fmt.Fprintf(os.Stderr, "%s: %s\n", p.tool, strings.ReplaceAll(line, "\n", " "))
}

func (p *printer) render(o Object) (string, error) {
	switch p.format {
	case Text:
		if text := o.Text(); text != "" {
			return text + "\n", nil
		}
		return "", nil
	case Shell:
		if script, ok := o.(interface{ Script() string }); ok && o.head().Code != "usage" {
			return script.Script(), nil
		}
		if p.replaces {
			return shell(o, p.exports), nil
		}
		return shell(o, nil), nil
	}
	// U+2028 and U+2029 end a line for some readers, so they are escaped like a newline.
	b, err := json.Marshal(o, jsontext.AllowInvalidUTF8(true), jsontext.EscapeForJS(true))
	if err != nil {
		return "", err
	}
	if p.observed != nil {
		p.observed(b)
	}
	return string(b) + "\n", nil
}

// shell renders what eval takes: variables, or a status that makes eval fail as well, after unsetting stale ones.
func shell(o Object, variables []string) string {
	var b strings.Builder
	if !o.head().OK {
		// What an outer program exported must not be taken for what was refused here.
		if len(variables) > 0 {
			fmt.Fprintf(&b, "unset %s; ", strings.Join(variables, " "))
		}
		fmt.Fprintf(&b, "(exit %d)\n", StatusOf(o.head().Code))
		return b.String()
	}
	if e, ok := o.(Exporter); ok {
		for _, x := range e.Exports() {
			fmt.Fprintf(&b, "export %s=%s\n", x.Name, Quote(x.Value))
		}
	}
	return b.String()
}

// Quote quotes a word for a POSIX shell, when it needs it.
func Quote(word string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+=,", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !safe(r) }) {
		return word
	}
	if utf8.ValidString(word) && !strings.ContainsFunc(word, acts) {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return quoteBytes(word)
}

// acts reports whether a character does something to a terminal. A newline does not: it ends no word that is quoted, and no
// command substitution gives it.
func acts(r rune) bool { return unicode.IsControl(r) && r != '\n' }

// quoteBytes quotes a word with bytes that a command cannot carry as they are: one that is printed as JSON must be text, and
// one that is pasted must not act on the terminal. They are spelled out.
func quoteBytes(word string) string {
	var b strings.Builder
	plain := 0 // where what can be quoted as it is begins
	for i := 0; i < len(word); {
		r, n := utf8.DecodeRuneInString(word[i:])
		if r == utf8.RuneError && n == 1 || acts(r) {
			if plain < i {
				b.WriteString(Quote(word[plain:i]))
			}
			b.WriteString(`"$(printf '`)
			for _, c := range []byte(word[i : i+n]) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
			b.WriteString(`')"`)
			plain = i + n
		}
		i += n
	}
	if plain < len(word) {
		b.WriteString(Quote(word[plain:]))
	}
	return b.String()
}

// write puts text on standard output, whole. It goes past os.Stdout, whose EPIPE would kill the process.
func write(text string) error {
	if text == "" {
		return nil
	}
	for b := []byte(text); len(b) > 0; {
		n, err := unix.Write(1, b)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			// Somebody made the pipe non-blocking; wait for room.
			_, _ = unix.Poll([]unix.PollFd{{Fd: 1, Events: unix.POLLOUT}}, -1)
		case err != nil:
			return err
		default:
			b = b[n:]
		}
	}
	return nil
}

// closedAtStart reports whether standard output was closed when the program began. The Go runtime opens /dev/null for
// reading and writing in its place, which some callers do themselves to discard output. So this matters only to a verb
// whose object nobody but the reader of standard output can know.
func closedAtStart() bool {
	flags, err := unix.FcntlInt(1, unix.F_GETFL, 0)
	if err != nil {
		return true
	}
	if flags&unix.O_ACCMODE != unix.O_RDWR {
		return false
	}
	var out, null unix.Stat_t
	return unix.Fstat(1, &out) == nil && unix.Stat("/dev/null", &null) == nil &&
		uint32(out.Mode)&unix.S_IFMT == unix.S_IFCHR && out.Rdev == null.Rdev
}

// WriteBytes writes to standard output as it is, for the verb that gives it away. The error is undeliverable.
func WriteBytes(b []byte) error {
	if err := write(string(b)); err != nil {
		return &undeliverable{err: err}
	}
	return nil
}
