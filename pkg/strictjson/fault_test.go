package strictjson

import (
	"errors"
	"strings"
	"testing"
)

// faults is every way in which a text is no state file, and the byte at which it goes wrong.
var faults = []struct {
	name   string
	text   string
	fault  Fault
	offset int64
}{
	{"nothing", "", Empty, -1},
	{"white space only", " \n\t\r\n", Empty, -1},
	{"NUL bytes only", "\x00\x00\x00\x00", NulFilled, -1},
	{"one NUL byte", "\x00", NulFilled, -1},
	{"a byte order mark", "\xef\xbb\xbf{}", BOM, 0},
	{"a byte order mark alone", "\xef\xbb\xbf", BOM, 0},
	{"UTF-16, little endian, marked", "\xff\xfe{\x00}\x00", UTF16, 0},
	{"UTF-16, big endian, marked", "\xfe\xff\x00{\x00}", UTF16, 0},
	{"UTF-16, little endian", "{\x00}\x00", UTF16, 0},
	{"UTF-16, big endian", "\x00{\x00}", UTF16, 0},
	{"carriage returns", "{\r\n}\r\n", CRLF, 1},
	{"a carriage return at the end", "{}\r", CRLF, 2},
	{"a byte that is not UTF-8", "{\"a\":\"\xff\"}", InvalidUTF8, 6},
	{"a surrogate in UTF-8", "{\"a\":\"\xed\xa0\x80\"}", InvalidUTF8, 6},
	{"an overlong slash", "{\"a\":\"\xc0\xaf\"}", InvalidUTF8, 6},
	{"cut inside a rune", "{\"a\":\"\xc3", InvalidUTF8, 6},
	{"cut after the brace", `{`, Truncated, 1},
	{"cut inside a name", `{"a`, Truncated, 3},
	{"cut after a colon", `{"a":`, Truncated, 5},
	{"cut inside a string", `{"a":"x`, Truncated, 7},
	{"cut inside a word", `{"a":tr`, Truncated, 7},
	{"cut before the end", `{"a":1`, Truncated, 6},
	{"cut after a comma", `{"a":1,`, Truncated, 7},
	{"cut inside a nested object", `{"a":{"b":1}`, Truncated, 12},
	{"a second object", `{} {}`, TrailingGarbage, 3},
	{"a second object on its own line", "{}\n{}\n", TrailingGarbage, 3},
	{"an extra bracket", `{}]`, TrailingGarbage, 2},
	{"a tail of NUL bytes", "{\"a\":1}\x00\x00", TrailingGarbage, 7},
	{"a name twice", `{"a":1,"a":2}`, DuplicateKey, 7},
	{"a name twice, once escaped", `{"a":1,"\u0061":2}`, DuplicateKey, 7},
	{"a name twice, deep inside", `{"a":[{"b":1,"c":[1,2],"b":2}]}`, DuplicateKey, 23},
	{"65 levels of arrays", `{"a":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + "}", TooDeep, 68},
	{"65 levels of objects", strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65), TooDeep, 320},
	{"an array", `[]`, NotObject, 0},
	{"an array of objects", `[{"a":1}]`, NotObject, 0},
	{"a string", `"x"`, NotObject, 0},
	{"a number", `1`, NotObject, 0},
	{"null", `null`, NotObject, 0},
	{"a word", `x`, Syntax, 0},
	{"a no-break space", "\u00a0", Syntax, 0},
	{"a vertical tab", "\v", Syntax, 0},
	{"NUL bytes before a word", "\x00\x00a", Syntax, 0},
	{"a comment", "// c\n{}", Syntax, 0},
	{"a name without quotes", `{a:1}`, Syntax, 1},
	{"no colon", `{"a" 1}`, Syntax, 5},
	{"a comma too many", `{"a":1,}`, Syntax, 6},
	{"a leading zero", `{"a":01}`, Syntax, 6},
	{"a bare fraction", `{"a":.5}`, Syntax, 5},
	{"a number that is none", `{"a":NaN}`, Syntax, 5},
	{"an unknown escape", `{"a":"\x"}`, Syntax, 6},
	{"half a surrogate pair", `{"a":"\ud800"}`, Syntax, 6},
	{"a control character in a string", "{\"a\":\"\x01\"}", Syntax, 6},
}

func TestEveryFaultIsNamedWithItsPlaceByEveryReader(t *testing.T) {
	var known struct {
		A any `json:"a"`
	}
	readers := map[string]func([]byte) error{
		"Parse":      func(b []byte) error { _, err := Parse(b); return err },
		"Decode":     func(b []byte) error { return Decode(b, &known) },
		"DecodeOpen": func(b []byte) error { return DecodeOpen(b, &known) },
	}
	for _, c := range faults {
		for reader, read := range readers {
			t.Run(c.name+"/"+reader, func(t *testing.T) {
				expect(t, read([]byte(c.text)), c.fault, c.offset)
			})
		}
	}
}

func TestEveryFaultIsInTheTable(t *testing.T) {
	seen := map[Fault]bool{Shape: true}
	for _, c := range faults {
		seen[c.fault] = true
	}
	for _, f := range []Fault{
		Empty, NulFilled, BOM, UTF16, CRLF, InvalidUTF8, Truncated, TrailingGarbage, DuplicateKey, TooDeep, NotObject,
		Syntax, Shape,
	} {
		if !seen[f] {
			t.Errorf("no text shows %s", f)
		}
	}
}

func TestWhatIsNotRefused(t *testing.T) {
	for name, text := range map[string]string{
		"64 levels":                strings.Repeat(`{"a":`, 64) + "1" + strings.Repeat("}", 64),
		"brackets in a string":     `{"a":"` + strings.Repeat(`[\"{`, 100) + `"}`,
		"white space around":       " \t\n{ }\n\n",
		"a number beyond float64":  `{"a":1e999}`,
		"a NUL that is escaped":    `{"a":"\u0000"}`,
		"the replacement rune":     "{\"a\":\"\ufffd\"}",
		"an empty name":            `{"":1}`,
		"a name of another letter": `{"a":1,"A":2}`,
	} {
		if _, err := Parse([]byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDeepNestingIsRefusedWithoutBeingFollowed(t *testing.T) {
	const levels = 100_000
	for name, text := range map[string]string{
		"open":    strings.Repeat(`{"a":`, levels),
		"closed":  strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels),
		"arrays":  `{"a":` + strings.Repeat("[", levels) + strings.Repeat("]", levels) + "}",
		"unclean": `{"a":` + strings.Repeat(`[{"b":`, levels),
	} {
		_, err := Parse([]byte(text))
		var fault *Error
		if !errors.As(err, &fault) || fault.Fault != TooDeep || fault.Offset > 400 {
			t.Errorf("%s: %v", name, err)
		}
		if err := DecodeOpen([]byte(text), new(struct{})); !errors.As(err, &fault) || fault.Fault != TooDeep {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnErrorSaysWhatAndWhere(t *testing.T) {
	for text, want := range map[string]string{
		"":              "is empty",
		"\x00\x00":      "consists of 2 NUL bytes",
		"{} x":          "has something after the object at byte 3",
		`{"a":1,"a":2}`: "has a member twice at byte 7",
	} {
		if _, err := Parse([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func expect(t *testing.T, err error, fault Fault, offset int64) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is no *Error", err)
	}
	if e.Fault != fault || e.Offset != offset {
		t.Errorf("%s at %d (%v), want %s at %d", e.Fault, e.Offset, e, fault, offset)
	}
}
