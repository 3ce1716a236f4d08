package strictjson

import (
	"errors"
	"slices"
	"strings"
	"testing"

	marshal "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

func parsed(t testing.TB, text string) Object {
	t.Helper()
	o, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestAnObjectKeepsEveryMemberInOrder(t *testing.T) {
	o := parsed(t, "{ \"z\" :1,\n\"a\":[1, {\"y\":null,\"b\":true}],\t\"m\":{\"q\":{},\"p\":[]},\"\":\"\"}")
	if names := o.Names(); !slices.Equal(names, []string{"z", "a", "m", ""}) {
		t.Errorf("names %q", names)
	}
	const want = `{
  "z": 1,
  "a": [
    1,
    {
      "y": null,
      "b": true
    }
  ],
  "m": {
    "q": {},
    "p": []
  },
  "": ""
}
`
	if got := string(o.Indented()); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// A file written back must mean what it meant to the program that put the member there: a number keeps its digits, and a
// string its runes, whichever escapes it was written with.
func TestUnknownMembersKeepTheirMeaning(t *testing.T) {
	for in, want := range map[string]string{
		`12345678901234567890123`: `12345678901234567890123`,
		`0.1000`:                  `0.1000`,
		`-0`:                      `-0`,
		`1E400`:                   `1E400`,
		`"\u0041\/\u000A"`:        `"A/\n"`,
		`"\ud83d\ude00"`:          `"😀"`,
		`"<&>"`:                   `"<&>"`,
		"\"\u2028\x7f\"":          "\"\u2028\x7f\"",
	} {
		o := parsed(t, `{"k":`+in+`,"expiresAt":""}`)
		o.Set("expiresAt", "later")
		if got, want := string(o.Indented()), "{\n  \"k\": "+want+",\n  \"expiresAt\": \"later\"\n}\n"; got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestSetChangesAMemberAtItsPlaceAndAddsANewOneAtTheEnd(t *testing.T) {
	o := parsed(t, `{"a":1,"b":[2],"c":3}`)
	copied := o.Clone()
	o.Set("b", "two\n")
	o.Set("d", 900.0)
	o.Set("e", uint64(1<<53-1))
	const want = "{\n  \"a\": 1,\n  \"b\": \"two\\n\",\n  \"c\": 3,\n  \"d\": 900,\n  \"e\": 9007199254740991\n}\n"
	if got := string(o.Indented()); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got, want := string(copied.Indented()), "{\n  \"a\": 1,\n  \"b\": [\n    2\n  ],\n  \"c\": 3\n}\n"; got != want {
		t.Errorf("the clone became %s", got)
	}
}

func TestAnObjectDoesNotDependOnTheBytesItWasReadFrom(t *testing.T) {
	text := []byte(`{"name":"value","list":[1,2]}`)
	o, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	want := string(o.Indented())
	copy(text, strings.Repeat("#", len(text)))
	if got := string(o.Indented()); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestAnEmptyObject(t *testing.T) {
	if got := string(Object{}.Indented()); got != "{}\n" {
		t.Errorf("%q", got)
	}
	if got := string(parsed(t, "{\n}").Indented()); got != "{}\n" {
		t.Errorf("%q", got)
	}
}

func TestMembersAreTakenOnlyAsWhatTheyAre(t *testing.T) {
	o := parsed(t, `{"s":"x\u0000","n":1.5e3,"i":-7,"null":null,"t":true,"a":[],"o":{},"huge":1e999,"numeral":"5"}`)
	if s, err := o.String("s"); s != "x\x00" || err != nil {
		t.Errorf("%q, %v", s, err)
	}
	if n, err := o.Number("n"); n != 1500 || err != nil {
		t.Errorf("%v, %v", n, err)
	}
	if n, err := o.Number("i"); n != -7 || err != nil {
		t.Errorf("%v, %v", n, err)
	}
	for name, text := range map[string]string{
		"n": `has a "n" that is no string`, "null": `has a "null" that is no string`, "t": `has a "t" that is no string`,
		"a": `has a "a" that is no string`, "o": `has a "o" that is no string`, "absent": `lacks "absent"`,
	} {
		_, err := o.String(name)
		shaped(t, err, text)
	}
	for name, text := range map[string]string{
		"s": `has a "s" that is no number`, "numeral": `has a "numeral" that is no number`,
		"null": `has a "null" that is no number`, "huge": `has a "huge" that is no finite number`, "absent": `lacks "absent"`,
	} {
		_, err := o.Number(name)
		shaped(t, err, text)
	}
	if o.Has("absent") || o.Has("S") || !o.Has("null") {
		t.Error("Has")
	}
}

func shaped(t *testing.T, err error, text string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Fault != Shape || e.Error() != text {
		t.Errorf("%v, want shape: %s", err, text)
	}
}

func TestSetTakesTextThatIsNotUTF8(t *testing.T) {
	var o Object
	o.Set("host", "a\xffb")
	if s, err := parsed(t, string(o.Indented())).String("host"); s != "a\ufffdb" || err != nil {
		t.Errorf("%q, %v", s, err)
	}
}

// The short way of Indented, for an object of plain members, and the general one write the same.
func TestBothWaysOfWritingAnObjectAgree(t *testing.T) {
	short := 0
	for _, text := range append(chosenDocuments(), randomDocuments(400)...) {
		o := parsed(t, text)
		b, ok := o.flat()
		if !ok {
			continue
		}
		short++
		general, err := marshal.Marshal(o, jsontext.WithIndent("  "))
		if err != nil || string(b) != string(general)+"\n" {
			t.Errorf("%s\nis written %s\nand %s\n%v", text, b, general, err)
		}
	}
	if short == 0 {
		t.Error("no object was plain")
	}
	plain := parsed(t, `{"holderId":"h","durationSeconds":900,"fence":42,"more":null,"ü":true}`)
	if _, ok := plain.flat(); !ok {
		t.Error("an ordinary lease is not")
	}
}
