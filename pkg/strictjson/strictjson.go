// Package strictjson decodes the JSON of state files without forgiveness and encodes it in one stable form.
//
// State files are written by programs only, so anything unusual in one is evidence of damage: it is named (a Fault), not
// guessed at. Refused are: an empty or NUL-filled file, a byte order mark, UTF-16, carriage returns, invalid UTF-8, a
// duplicate member name, anything after the value, nesting deeper than 64, and anything that is not an object.
//
// Decode is for closed objects, whose members are all known; DecodeOpen ignores unknown ones; Parse keeps every member, in order, so that a file can be changed and written back without losing what another program put there.
package strictjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Fault is what is wrong with a file, as a stable word.
type Fault string

// The faults.
const (
	Empty           Fault = "empty"
	NulFilled       Fault = "nul-filled"
	BOM             Fault = "bom"
	UTF16           Fault = "utf-16"
	CRLF            Fault = "crlf"
	InvalidUTF8     Fault = "invalid-utf8"
	Truncated       Fault = "truncated"
	TrailingGarbage Fault = "trailing-garbage"
	DuplicateKey    Fault = "duplicate-key"
	TooDeep         Fault = "too-deep"
	NotObject       Fault = "not-an-object"
	Syntax          Fault = "syntax"
	Shape           Fault = "shape" // valid JSON whose members are not the expected ones
)

const maxDepth = 64

// Error names the fault, where it is, and the detail. Offset counts bytes from 0; it is -1 for a fault of the whole.
type Error struct {
	Fault  Fault
	Offset int64
	Detail string
}

func (e *Error) Error() string {
	if e.Offset < 0 {
		return e.Detail
	}
	return fmt.Sprintf("%s at byte %d", e.Detail, e.Offset)
}

// ShapeError says that a member is missing or not what it must be.
func ShapeError(format string, args ...any) *Error {
	return &Error{Fault: Shape, Offset: -1, Detail: fmt.Sprintf(format, args...)}
}

// check refuses everything that is not exactly one well-formed JSON object.
func check(b []byte) *Error {
	if plain(b) && jsontext.Value(b).IsValid() {
		return nil
	}
	return diagnosed(b)
}

// plain reports whether b begins as an object and has nothing in it that a JSON parser would let pass.
func plain(b []byte) bool {
	return jsontext.Value(b).Kind() == '{' && bytes.IndexByte(b, '\r') < 0 && !deep(b)
}

// diagnosed names the fault of b, which has one.
func diagnosed(b []byte) *Error {
	if err := diagnoseText(b); err != nil {
		return err
	}
	return diagnose(b)
}

// deep reports whether well-formed JSON is nested deeper than maxDepth.
func deep(b []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}', c == ']':
			depth--
		}
	}
	return false
}

func diagnose(b []byte) *Error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(b))
	for first := true; first || dec.StackDepth() > 0; first = false {
		token, err := dec.ReadToken()
		switch {
		case err != nil:
			return syntaxError(dec, err)
		case first && token.Kind() != '{':
			return &Error{NotObject, 0, "is JSON, but not an object"}
		case dec.StackDepth() > maxDepth:
			return &Error{TooDeep, dec.InputOffset() - 1, fmt.Sprintf("is nested deeper than %d levels", maxDepth)}
		}
	}
	rest := bytes.TrimLeft(b[dec.InputOffset():], " \t\n")
	return &Error{TrailingGarbage, int64(len(b) - len(rest)), "has something after the object"}
}

// diagnoseText names the faults that a JSON parser would only call a syntax error; nil when there is none of them.
func diagnoseText(b []byte) *Error {
	switch {
	case len(bytes.Trim(b, " \t\r\n")) == 0:
		return &Error{Empty, -1, "is empty"}
	case len(bytes.Trim(b, "\x00")) == 0:
		return &Error{NulFilled, -1, fmt.Sprintf("consists of %d NUL bytes", len(b))}
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
		return &Error{BOM, 0, "begins with a byte order mark"}
	case bytes.HasPrefix(b, []byte("\xff\xfe")), bytes.HasPrefix(b, []byte("\xfe\xff")),
		bytes.HasPrefix(b, []byte("{\x00")), bytes.HasPrefix(b, []byte("\x00{")):
		return &Error{UTF16, 0, "is UTF-16, not UTF-8"}
	}
	if i := bytes.IndexByte(b, '\r'); i >= 0 {
		return &Error{CRLF, int64(i), "has a carriage return"}
	}
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size == 1 {
			return &Error{InvalidUTF8, int64(i), "is not UTF-8"}
		}
		i += size
	}
	return nil
}

func syntaxError(dec *jsontext.Decoder, err error) *Error {
	offset := dec.InputOffset()
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		offset = syntactic.ByteOffset
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return &Error{Truncated, offset, "ends in the middle"}
	case errors.Is(err, jsontext.ErrDuplicateName):
		return &Error{DuplicateKey, offset, "has a member twice"}
	}
	return &Error{Syntax, offset, "is not JSON"}
}

// Decode fills the struct v points to from b, whose members must all be fields of it. The error is an *Error.
func Decode(b []byte, v any) error { return decode(b, v, json.RejectUnknownMembers(true)) }

// DecodeOpen is Decode for objects that may have members this program does not know; they are ignored.
func DecodeOpen(b []byte, v any) error { return decode(b, v) }

func decode(b []byte, v any, opts ...json.Options) error {
	if !plain(b) {
		return diagnosed(b)
	}
	if err := json.Unmarshal(b, v, opts...); err != nil {
		if fault := check(b); fault != nil {
			return fault
		}
		return shapeError(err)
	}
	return nil
}

func shapeError(err error) *Error {
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		return ShapeError("does not have the expected members: %v", err)
	}
	name := string(semantic.JSONPointer)
	if errors.Is(err, json.ErrUnknownName) {
		return &Error{Shape, semantic.ByteOffset, "has an unknown member " + name}
	}
	return &Error{Shape, semantic.ByteOffset, "has a member of the wrong type, " + name + ","}
}

// Line encodes v as one line of JSON with its newline. Invalid UTF-8 in strings becomes U+FFFD.
func Line(v any) ([]byte, error) {
	b, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, err
	}
	return append(b, '\n'), nil
}
