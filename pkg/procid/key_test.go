package procid

import (
	"math"
	"strings"
	"testing"
)

func TestParseKey(t *testing.T) {
	const uuid = "01234567-89ab-cdef-0123-456789abcdef"
	for text, want := range map[string]Key{
		"linux:0@" + uuid + "/1":                                     {SchemeLinux, 0, uuid, 1},
		"linux:123@" + uuid + "/4026531836":                          {SchemeLinux, 123, uuid, 4026531836},
		"linux:9999999999999999999@" + uuid + "/9999999999999999999": {SchemeLinux, 9999999999999999999, uuid, 9999999999999999999},
		"linux:123@?/4026531836":                                     {SchemeLinux, 123, "?", 4026531836},
		"linux:0":                                                    {Scheme: SchemeLegacyTicks},
		"linux:000123":                                               {Scheme: SchemeLegacyTicks, Ticks: 123},
		"linux:9999999999999999999":                                  {Scheme: SchemeLegacyTicks, Ticks: 9999999999999999999},
		"darwin:1700000000.000001@5F9A0B1C-0000-0000-0000-000000000000": {Scheme: SchemeOtherSystem},
		"freebsd:1700000000.5@1690000000":                               {Scheme: SchemeOtherSystem},
		"ps:Thu Jan  1 00:00:00 1970":                                   {Scheme: SchemeLegacyPS},
		"ps:1":                                                          {Scheme: SchemeLegacyPS},
	} {
		if got := ParseKey(text); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
	for _, text := range []string{
		"", " ", "linux", "linux:", "linux:x", "linux:-1", "linux:+1", "linux:1.5", "linux: 1", "linux:1 ", "linux:1\n", "LINUX:1",
		"linux:0123@" + uuid + "/1", "linux:1@" + uuid, "linux:1@" + uuid + "/", "linux:1@" + uuid + "/0", "linux:1@" + uuid + "/01",
		"linux:1@" + uuid + "/1/2", "linux:1@" + uuid + "/1\n", "linux:1@" + strings.ToUpper(uuid) + "/1", "linux:1@/1", "linux:1@??/1",
		"linux:1@" + uuid[1:] + "/1", "linux:10000000000000000000", "linux:123456789012345678901", "linux:1@" + uuid + "/10000000000000000000",
		"darwin:1@x", "darwin:1.2@", "solaris:1.2@x", "ps:", "ps", "win:1", "\x00", "linux:١",
	} {
		if got := ParseKey(text); got != (Key{Scheme: SchemeUnknown}) {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestOnlyAQuestionMarkIsWeak(t *testing.T) {
	if !ParseKey("linux:1@?/2").Weak() || ParseKey(keyA).Weak() || ParseKey("linux:1").Weak() || ParseKey("").Weak() {
		t.Error("Weak")
	}
}

// FuzzParseKey: a key of our scheme is written as it was read, so that comparing texts and comparing parts agree; no
// other text makes a key of our scheme.
func FuzzParseKey(f *testing.F) {
	for _, text := range []string{keyA, "linux:1@?/2", "linux:1", "ps:x", "darwin:1.2@x", "", "linux:" + strings.Repeat("9", 20)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		k := ParseKey(text)
		switch k.Scheme {
		case SchemeLinux:
			if k.String() != text {
				t.Errorf("%q is written %q", text, k.String())
			}
			if again := ParseKey(k.String()); again != k {
				t.Errorf("%+v, again %+v", k, again)
			}
		case SchemeLegacyTicks, SchemeLegacyPS, SchemeOtherSystem, SchemeUnknown:
			if k.Boot != "" || k.NS != 0 || k.Weak() || k.Scheme != SchemeLegacyTicks && k.Ticks != 0 {
				t.Errorf("%+v", k)
			}
		default:
			t.Errorf("scheme %q", k.Scheme)
		}
		v := decide(Identity{PID: 1, StartKey: text}, k, facts{Boot: "?"}, true)
		if v.Word != Uncertain && v.Word != OtherHost {
			t.Errorf("with nothing known: %+v", v)
		}
	})
}

// FuzzKeyString: whatever numbers a key is made of, it reads back as itself.
func FuzzKeyString(f *testing.F) {
	f.Add(uint64(0), uint64(1), false)
	f.Add(uint64(math.MaxInt64), uint64(4026531836), true)
	f.Fuzz(func(t *testing.T, ticks, ns uint64, weak bool) {
		k := Key{Scheme: SchemeLinux, Ticks: ticks, Boot: bootA, NS: max(ns, 1)}
		if weak {
			k.Boot = weakBoot
		}
		if ticks >= 1e19 || ns >= 1e19 {
			return // more than any kernel counts
		}
		if got := ParseKey(k.String()); got != k {
			t.Errorf("%s: %+v, want %+v", k, got, k)
		}
	})
}
