package procid

import (
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

func TestParseKey(t *testing.T) {
	const uuid = "01234567-89ab-cdef-0123-456789abcdef"
	for text, want := range map[string]Key{
		"linux:0@" + uuid + "/1":                                     {Scheme: SchemeLinux, Ticks: 0, Boot: uuid, NS: 1},
		"linux:123@" + uuid + "/4026531836":                          {Scheme: SchemeLinux, Ticks: 123, Boot: uuid, NS: 4026531836},
		"linux:9999999999999999999@" + uuid + "/9999999999999999999": {Scheme: SchemeLinux, Ticks: 9999999999999999999, Boot: uuid, NS: 9999999999999999999},
		"linux:123@?/4026531836":                                     {Scheme: SchemeLinux, Ticks: 123, Boot: "?", NS: 4026531836},
		"linux:0":                                                    {Scheme: SchemeLegacyTicks},
		"linux:000123":                                               {Scheme: SchemeLegacyTicks, Ticks: 123},
		"linux:9999999999999999999":                                  {Scheme: SchemeLegacyTicks, Ticks: 9999999999999999999},
		"darwin:1700000000.000001@5F9A0B1C-0000-0000-0000-000000000000": {Scheme: SchemeDarwin, Start: "1700000000.000001", Boot: "5F9A0B1C-0000-0000-0000-000000000000"},
		"freebsd:1700000000.5@1690000000":                               {Scheme: SchemeFreeBSD, Start: "1700000000.5", Boot: "1690000000"},
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

// FuzzParseKey: a key of our schemes is written as it was read, so that comparing texts and comparing parts agree.
func FuzzParseKey(f *testing.F) {
	for _, text := range []string{keyA, "linux:1@?/2", "linux:1", "ps:x", "darwin:1.2@x", "", "linux:" + strings.Repeat("9", 20)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		k := ParseKey(text)
		switch k.Scheme {
		case SchemeLinux, SchemeDarwin, SchemeFreeBSD:
			if k.String() != text {
				t.Errorf("%q is written %q", text, k.String())
			}
			if again := ParseKey(k.String()); again != k {
				t.Errorf("%+v, again %+v", k, again)
			}
		case SchemeLegacyTicks, SchemeLegacyPS, SchemeUnknown:
			if k.Boot+k.Start != "" || k.NS != 0 || k.Weak() || k.Scheme != SchemeLegacyTicks && k.Ticks != 0 {
				t.Errorf("%+v", k)
			}
		default:
			t.Errorf("scheme %q", k.Scheme)
		}
		v := decide(Identity{PID: 1, StartKey: text}, k, facts{System: SchemeLinux, Boot: "?"}, true)
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

// grammar is the language of start keys.
var grammar = map[Scheme]string{
	SchemeLinux:       `linux:(0|[1-9][0-9]{0,18})@([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\?)/([1-9][0-9]{0,18})`,
	SchemeLegacyTicks: `linux:([0-9]{1,19})`,
	SchemeDarwin:      `darwin:[0-9]+\.[0-9]+@.+`,
	SchemeFreeBSD:     `freebsd:[0-9]+\.[0-9]+@.+`,
	SchemeLegacyPS:    `ps:.+`,
}

// byGrammar finds a key's scheme by the grammar.
func byGrammar() func(string) Scheme {
	patterns := map[Scheme]*regexp.Regexp{}
	for scheme, pattern := range grammar {
		patterns[scheme] = regexp.MustCompile("^(?:" + pattern + ")$")
	}
	return func(text string) Scheme {
		for scheme, pattern := range patterns {
			if pattern.MatchString(text) {
				return scheme
			}
		}
		return SchemeUnknown
	}
}

// mutants calls f with texts that are one to three edits away from a key.
func mutants(n int, f func(string)) {
	random := rand.New(rand.NewPCG(1, 2))
	keys := []string{
		keyA, "linux:1@?/2", "linux:0@" + bootA + "/1", "linux:0123", "linux:" + strings.Repeat("9", 19), "darwin:1.2@x", "freebsd:1.2@1.2",
		"ps:x", "linux:9999999999999999999@?/9999999999999999999",
	}
	const letters = "0123456789abcfgAF-:@/?. \n\x00\xff"
	for range n {
		text := []byte(keys[random.IntN(len(keys))])
		for range 1 + random.IntN(3) {
			i := random.IntN(len(text) + 1)
			c := letters[random.IntN(len(letters))]
			switch random.IntN(3) {
			case 0:
				text = append(text[:i], append([]byte{c}, text[i:]...)...)
			case 1:
				text = append(text[:i], text[min(i+1, len(text)):]...)
			default:
				text[min(i, len(text)-1)] = c
			}
		}
		f(string(text))
	}
}

func TestKeysAreReadByTheGrammar(t *testing.T) {
	scheme, seen := byGrammar(), map[Scheme]int{}
	mutants(100_000, func(text string) {
		got := ParseKey(text).Scheme
		seen[got]++
		if want := scheme(text); got != want {
			t.Errorf("%q is read as %s, the grammar says %s", text, got, want)
		}
	})
	for _, s := range []Scheme{SchemeLinux, SchemeLegacyTicks, SchemeDarwin, SchemeFreeBSD, SchemeLegacyPS, SchemeUnknown} {
		if seen[s] < 500 {
			t.Errorf("only %d texts of scheme %s", seen[s], s)
		}
	}
}

// FuzzKeyGrammar: the parser accepts what the grammar does, and nothing else.
func FuzzKeyGrammar(f *testing.F) {
	scheme := byGrammar()
	mutants(100, func(text string) { f.Add(text) })
	f.Fuzz(func(t *testing.T, text string) {
		if got, want := ParseKey(text).Scheme, scheme(text); got != want {
			t.Errorf("%q is read as %s, the grammar says %s", text, got, want)
		}
	})
}

func BenchmarkParseKey(b *testing.B) {
	for b.Loop() {
		ParseKey(keyA)
	}
}
