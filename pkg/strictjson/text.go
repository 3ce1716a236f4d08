package strictjson

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Text is a string as ECMAScript has it: UTF-16 units, among which a surrogate may lack its partner, because programs cut
// such strings anywhere. UTF-8 has no form for that one; here it is the three bytes that UTF-8 would give it, and an escape
// in JSON.
type Text string

// DecodeLoose is Decode for objects in which the members of the given names are of type Text. In every other place a
// surrogate without its partner is InvalidUTF8.
func DecodeLoose(b []byte, v any, names ...string) error {
	err := Decode(b, v)
	if err == nil || !hasSurrogateEscape(b) || !plain(b) {
		return err
	}
	if at := strayLone(b, names); at >= 0 {
		return &Error{InvalidUTF8, at, "has a surrogate without its partner"}
	}
	if json.Unmarshal(b, v, json.RejectUnknownMembers(true), jsontext.AllowInvalidUTF8(true)) != nil {
		return err
	}
	return nil
}

func hasSurrogateEscape(b []byte) bool {
	return bytes.Contains(b, []byte(`\ud`)) || bytes.Contains(b, []byte(`\uD`))
}

// strayLone is the offset of the first string with a lone surrogate that is not the value of one of the named members, or -1.
func strayLone(b []byte, names []string) int64 {
	dec := jsontext.NewDecoder(bytes.NewBuffer(b), jsontext.AllowInvalidUTF8(true))
	allowed := false
	for {
		kind := dec.PeekKind()
		if kind != '"' {
			if _, err := dec.ReadToken(); err != nil {
				return -1
			}
			allowed = false
			continue
		}
		raw, err := dec.ReadValue()
		if err != nil {
			return -1
		}
		text := unquote(raw)
		if !allowed && !utf8.ValidString(text) {
			return dec.InputOffset() - int64(len(raw))
		}
		container, length := dec.StackIndex(dec.StackDepth())
		isName := container == '{' && length%2 == 1
		allowed = isName && slices.Contains(names, text)
	}
}

// UnmarshalJSONFrom reads a string.
func (t *Text) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	if raw.Kind() != '"' {
		return ShapeError("has a member that is no string")
	}
	*t = Text(unquote(raw))
	return nil
}

// MarshalJSONTo writes a string, a lone surrogate as its escape.
func (t Text) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteValue(quote(string(t)))
}

// AppendText appends a text as MarshalJSONTo writes it.
func AppendText(b []byte, t Text) []byte { return append(b, quote(string(t))...) }

// EncodeOptions are what a Marshal of values with Text in them needs, to keep lone surrogates.
func EncodeOptions() json.Options {
	return json.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(true))
}

// Units is the length in UTF-16 units.
func (t Text) Units() int {
	n := 0
	for s := string(t); s != ""; {
		size, units := unit(s)
		s, n = s[size:], n+units
	}
	return n
}

// Cut returns at most n UTF-16 units of s, whole code points only; what is not UTF-8 becomes U+FFFD.
func Cut(s string, n int) Text {
	var out []byte
	for _, r := range s {
		if n -= utf16.RuneLen(r); n < 0 {
			break
		}
		out = utf8.AppendRune(out, r)
	}
	return Text(out)
}

// unit is the size in bytes of the code point or lone surrogate that s begins with, and its UTF-16 units.
func unit(s string) (size, units int) {
	if _, ok := lone(s); ok {
		return 3, 1
	}
	r, size := utf8.DecodeRuneInString(s)
	return size, utf16.RuneLen(r)
}

// lone is the surrogate that s begins with.
func lone(s string) (uint16, bool) {
	if len(s) < 3 || s[0] != 0xed || s[1] < 0xa0 || s[1] > 0xbf || s[2] < 0x80 || s[2] > 0xbf {
		return 0, false
	}
	return 0xd000 | uint16(s[1]&0x3f)<<6 | uint16(s[2]&0x3f), true
}

// unquote decodes a valid JSON string, lone surrogates included.
func unquote(raw jsontext.Value) string {
	s := raw[1 : len(raw)-1]
	out := make([]byte, 0, len(s))
	for len(s) > 0 {
		if s[0] != '\\' {
			out, s = append(out, s[0]), s[1:]
			continue
		}
		if s[1] != 'u' {
			out, s = append(out, unescape(s[1])), s[2:]
			continue
		}
		r := rune(hex4(s[2:]))
		s = s[6:]
		if utf16.IsSurrogate(r) && len(s) >= 6 && s[0] == '\\' && s[1] == 'u' {
			if pair := utf16.DecodeRune(r, rune(hex4(s[2:]))); pair != utf8.RuneError {
				out, s = utf8.AppendRune(out, pair), s[6:]
				continue
			}
		}
		if utf16.IsSurrogate(r) {
			out = append(out, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
			continue
		}
		out = utf8.AppendRune(out, r)
	}
	return string(out)
}

func hex4(s []byte) uint16 {
	n, _ := strconv.ParseUint(string(s[:4]), 16, 16)
	return uint16(n)
}

func unescape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// quote encodes as JSON.stringify of ECMAScript does.
func quote(s string) jsontext.Value {
	out := []byte{'"'}
	for s != "" {
		if u, ok := lone(s); ok {
			out = append(out, '\\', 'u')
			out = hex.AppendEncode(out, []byte{byte(u >> 8), byte(u)})
			s = s[3:]
			continue
		}
		_, size := utf8.DecodeRuneInString(s)
		quoted, _ := jsontext.AppendQuote(nil, s[:size])
		out = append(out, quoted[1:len(quoted)-1]...)
		s = s[size:]
	}
	return append(out, '"')
}
