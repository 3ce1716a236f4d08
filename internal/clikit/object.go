package clikit

import (
	"errors"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"holdfast/pkg/regfile"
	"holdfast/pkg/strictjson"
)

// Object is one line of output. Implementations embed Head first.
type Object interface {
	head() *Head
	Text() string // for a terminal, without the final newline; empty prints nothing
}

// Head begins every object.
type Head struct {
	Tool string `json:"tool"`
	Op   string `json:"op"`
	OK   bool   `json:"ok"`
	Code string `json:"code"`
}

func (h *Head) head() *Head { return h }

// Done is the head of a success.
func Done(code string) Head { return Head{OK: true, Code: code} }

// Refused is the head of a refusal.
func Refused(code string) Head { return Head{Code: code} }

// Why ends every refusal: what happened, to which file, and what to type next.
type Why struct {
	Reason string `json:"reason"`
	Location
	Remedy string `json:"remedy,omitzero"` // a command to paste, or "none is safe" and why
}

func (w Why) why() Why { return w }

// Text is the remedy; the reason is on standard error, which a terminal shows as well.
func (w Why) Text() string {
	if w.Remedy == "" {
		return ""
	}
	return "remedy: " + w.Remedy
}

// Location is a path, lossless: one that is not UTF-8 comes with its bytes.
type Location struct {
	Path      string `json:"path,omitzero"`
	PathBytes []byte `json:"pathBytes,omitzero"`
}

// At locates a path.
func At(path string) Location {
	l := Location{Path: path}
	if !utf8.ValidString(path) {
		l.PathBytes = []byte(path)
	}
	return l
}

// Warned is what went wrong after a success; each goes to standard error too.
type Warned struct {
	Warnings []string `json:"warnings,omitzero"`
}

func (w Warned) warnings() []string { return w.Warnings }

// Export is a shell variable that an object gives to eval.
type Export struct{ Name, Value string }

// Exporter is an object with a form for the shell.
type Exporter interface{ Exports() []Export }

// SyntaxFault is what is wrong with a file whose content cannot be read, and where.
type SyntaxFault struct {
	Fault  string `json:"fault,omitzero"`
	Offset *int64 `json:"offset,omitzero"` // bytes
}

// FaultOf takes the fault from an error about a file's content.
func FaultOf(err error) SyntaxFault {
	var e *strictjson.Error
	if !errors.As(err, &e) {
		return SyntaxFault{}
	}
	f := SyntaxFault{Fault: string(e.Fault)}
	if e.Offset >= 0 {
		f.Offset = &e.Offset
	}
	return f
}

// FileFacts are what a refusal about a file knows beside its reason.
type FileFacts struct {
	Kind  string  `json:"kind,omitzero"`  // what is there instead of a regular file
	Limit int64   `json:"limit,omitzero"` // bytes; of a file that is too large
	UID   *uint32 `json:"uid,omitzero"`   // the owner of a foreign file
	Errno string  `json:"errno,omitzero"` // the name of the system's error
}

// FactsOf takes the facts from an error about a file, and where it is.
func FactsOf(err error) (FileFacts, Location) {
	var e *regfile.Error
	if !errors.As(err, &e) {
		return FileFacts{}, Location{}
	}
	f := FileFacts{Limit: e.Limit}
	if e.Code == regfile.CodeNotRegular || e.Code == regfile.CodeDirectoryInvalid {
		f.Kind = string(e.Kind)
	}
	if e.Code == regfile.CodeForeignOwner {
		f.UID = &e.UID
	}
	var no unix.Errno
	if errors.As(e.Err, &no) {
		f.Errno = unix.ErrnoName(no)
	}
	return f, At(e.Path)
}

// PlainRefusal is a refusal without fields of its own.
type PlainRefusal struct {
	Head
	FileFacts
	Why
}

// Text is the remedy.
func (r *PlainRefusal) Text() string { return r.Why.Text() }

// refusalOf describes any error: its code, and the facts of the file it is about; an error without a code is a bug.
func refusalOf(err error) *PlainRefusal {
	facts, at := FactsOf(err)
	return &PlainRefusal{
		Head: Refused(CodeOf(err)), FileFacts: facts, Why: Why{Reason: err.Error(), Location: at},
	}
}
