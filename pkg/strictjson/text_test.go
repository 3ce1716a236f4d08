package strictjson

import (
	"errors"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

type loose struct {
	A     string `json:"a,omitzero"`
	Cause *Text  `json:"cause,omitzero"`
}

// Texts survive decoding and encoding byte for byte, the way ECMAScript writes them.
func TestTextKeepsLoneSurrogates(t *testing.T) {
	for _, raw := range []string{
		`{"cause":""}`, `{"cause":"plain"}`, `{"cause":"\ud83d"}`, `{"cause":"a\udc00b"}`, `{"cause":"\ude00\ud83d"}`, `{"cause":"😀"}`,
		`{"cause":"\b\f\n\r\t\u0001\"\\/é"}`, `{"a":"x","cause":"\ud83d\\u"}`,
	} {
		var v loose
		if err := DecodeLoose([]byte(raw), &v, "cause"); err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		b, err := json.Marshal(v, EncodeOptions())
		if err != nil || string(b) != raw {
			t.Errorf("%s became %s (%v)", raw, b, err)
		}
	}
}

func TestLoneSurrogatesElsewhereAreRefused(t *testing.T) {
	for _, raw := range []string{`{"a":"\ud83d"}`, `{"a":"\udc00","cause":"\ud83d"}`, `{"cause\ud83d":"x"}`, `{"a":"cause","b":"\ud83d"}`} {
		var v loose
		var fault *Error
		if err := DecodeLoose([]byte(raw), &v, "cause"); !errors.As(err, &fault) || fault.Fault != InvalidUTF8 {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func TestTextUnits(t *testing.T) {
	for text, want := range map[Text]int{"": 0, "abc": 3, "é": 1, "😀": 2, Text(unquote(jsontext.Value(`"\ud83d"`))): 1} {
		if got := text.Units(); got != want {
			t.Errorf("%q has %d units, want %d", text, got, want)
		}
	}
	if got := Cut("a😀b", 2); got != "a" {
		t.Errorf("cut to %q", got)
	}
	if got := Cut("a😀b", 3); got != "a😀" {
		t.Errorf("cut to %q", got)
	}
}
