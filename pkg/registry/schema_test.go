package registry

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"holdfast/pkg/strictjson"
)

// decoders read each kind of file; the result is what the decoded value is written as.
var decoders = map[string]func([]byte) ([]byte, error){
	"registry-format": reencode[registryFormat],
	"registry":        reencode[rootsFile],
	"format":          reencode[serviceFormat],
	"config":          reencode[configFile],
	"registration":    reencode[Registration],
	"owner-lock":      reencode[ownerLock],
	"capability":      reencode[capabilityFile],
	"checkout-lock":   reencode[checkoutLock],
	"receipt":         reencode[receipt],
}

func reencode[T interface{ check() error }](b []byte) ([]byte, error) {
	var v T
	if err := decode(b, &v); err != nil {
		return nil, err
	}
	return encode(v), nil
}

const (
	sampleUUID  = "aaaaaaaa-0000-4000-8000-000000000001"
	sampleOther = "bbbbbbbb-0000-4000-8000-000000000002"
	sampleHex   = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	sampleKey   = "linux:12345@01234567-89ab-4cde-8f01-23456789abcd/4026531836"
)

// samples is a valid file of each kind.
func samples() map[string][]byte {
	row := Reservation{"/srv/a", "/home/u/state", sampleHex, "http://127.0.0.1:4100", sampleUUID, 4711, sampleKey, "vm", sampleOther}
	second := row
	second.Root, second.Endpoint = "/srv/ä \u2028 \"b\"", "http://[::1]:1"
	registration := Registration{schemaRegistration, row, sampleUUID, "65024:123", Idle}
	r := newReceipt(registration, map[string]*Snapshot{
		formatFile:     {Identity: sampleHex, Stamp: Stamp{1, 2, 3, 4, 5}},
		capabilityName: {Stamp: Stamp{1, 2, 3, 4, 5}},
	})
	r.Pending = sampleHex
	return map[string][]byte{
		"registry-format": encode(registryFormat{schemaRegistryFormat, "/home/u/state"}),
		"registry":        encode(rootsFile{schemaRegistry, []Reservation{row, second}}),
		"format":          encode(serviceFormat{schemaServiceFormat, "/srv/a", "/home/u/state", sampleHex}),
		"config":          encode(configFile{schemaConfig, "http://127.0.0.1:0", sampleHex}),
		"registration":    encode(registration),
		"owner-lock":      encode(ownerLock{schemaOwnerLock, sampleUUID, sampleOther, 4711, sampleKey, "vm"}),
		"capability":      encode(capabilityFile{schemaCapability, sampleUUID, strings.Repeat("A", 43)}),
		"checkout-lock":   encode(checkoutLock{sampleUUID, 4711, sampleKey, "vm", "2026-01-02T03:04:05.678Z"}),
		"receipt":         encode(r),
	}
}

func TestEachFileReadsAsItWasWritten(t *testing.T) {
	for kind, text := range samples() {
		if got, err := decoders[kind](text); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s: %v: %s", kind, err, text)
		}
	}
	for kind := range decoders {
		if samples()[kind] == nil {
			t.Errorf("no sample of %s", kind)
		}
	}
}

// replaced is a text with a part of it replaced; the part has to be there.
type replaced struct{ old, new string }

// mutations are changes after which no file that has the old text is one of ours any more.
var mutations = []replaced{
	{`{"schema":`, `{"schema" :`}, {`{"schema":`, `{ "schema":`}, {`","`, `", "`}, {`"}`, `"} `}, {`"}`, `",}`},
	{`holdfast-`, `holdfast_`}, {`/1"`, `/2"`}, {`/1"`, `/01"`}, {`"schema"`, `"Schema"`}, {`"schema":"`, `"schema":"x`},
	{`"root":"/`, `"root":"`}, {`"root":"/`, `"root":"//`}, {`"root":"/`, `"root":"/../`}, {`"root":"/srv/a"`, `"root":"/srv/a/"`},
	{`"root":"/`, `"root":"/\u0000`}, {`"root":"/`, `"root":"/\n`}, {`"root":"/`, `"root":"/\u007f`}, {`"root":"/`, "\"root\":\"/\xff"},
	{`"root":"/srv/a"`, `"root":null`}, {`"root":"/srv/a"`, `"root":["/srv/a"]`}, {`"root":"/`, `"root":"\/`},
	{`"root":"/`, `"root":"/` + strings.Repeat("x", 4096)},
	{`"stateHome":"/`, `"stateHome":"`}, {`"stateHome":"/`, `"stateHome":"/./`},
	{sampleHex, strings.ToUpper(sampleHex)}, {sampleHex, sampleHex[1:]}, {sampleHex, sampleHex + "0"}, {sampleHex, "sha256:" + sampleHex}, {sampleHex, ""},
	{`http://127.0.0.1:4100`, `http://127.0.0.1:0`}, {`http://127.0.0.1:`, `http://localhost:`}, {`http://127.0.0.1:`, `http://127.0.0.1:0`},
	{`http://[::1]:1`, `http://[::1]:0`}, {`http://127.0.0.1:0"`, `http://127.0.0.1:00"`},
	{sampleUUID, strings.ToUpper(sampleUUID)}, {sampleUUID, "{" + sampleUUID + "}"}, {sampleUUID, "urn:uuid:" + sampleUUID}, {sampleUUID, ""},
	{sampleUUID, strings.ReplaceAll(sampleUUID, "-", "")}, {sampleOther, "x"},
	{`"pid":4711`, `"pid":0`}, {`"pid":4711`, `"pid":-1`}, {`"pid":4711`, `"pid":2147483648`}, {`"pid":4711`, `"pid":"4711"`}, {`"pid":4711`, `"pid":4711.0`},
	{`"pid":4711`, `"pid":4.711e3`}, {`"pid":4711`, `"pid":04711`}, {`"pid":4711`, `"pid":99999999999999999999`}, {`"pid":4711,`, ``},
	{sampleKey, ""}, {sampleKey, strings.Repeat("k", 256)},
	{`"host":"vm"`, `"host":""`}, {`"host":"vm"`, `"host":"v\tm"`}, {`"host":"vm"`, `"host":"` + strings.Repeat("h", 256) + `"`}, {`"host":"vm"`, `"Host":"vm"`},
	{`"65024:123"`, `"65024"`}, {`"65024:123"`, `"065024:123"`}, {`"65024:123"`, `"65024:-1"`}, {`"65024:123"`, `"65024:1:2"`}, {`"65024:123"`, `"1:18446744073709551616"`},
	{`"phase":"idle"`, `"phase":"ready"`}, {`"phase":"idle"`, `"phase":""`}, {`"phase":"idle"`, `"phase":"Idle"`}, {`,"phase":"idle"`, ``},
	{`AAAA"`, `AAA"`}, {`AAAA"`, `AAAAA"`}, {`AAAA"`, `AAA="`}, {`AAAA"`, `AAAB"`}, {`AAAA"`, `AA+A"`}, {`AAAA"`, `AA/A"`},
	{`03:04:05.678Z`, `03:04:05Z`}, {`03:04:05.678Z`, `03:04:05.678+00:00`}, {`03:04:05.678Z`, `03:04:65.678Z`}, {`2026-01-02T`, `2026-1-2T`},
	{`"entries":[`, `"entries":null,"x":[`}, {`"entries":[{`, `"entries":[null,{`}, {`"entries":[{`, `"entries":[{},{`}, {`"entries":[{`, `"entries":[[],{`},
	{`"file":"format.json"`, `"file":"../format.json"`}, {`"file":"format.json"`, `"file":"registry.lock"`}, {`"file":"format.json","identity":"` + sampleHex + `"`, `"file":"format.json"`},
	{`"file":"local-capability.json"`, `"file":"local-capability.json","identity":"` + sampleHex + `"`}, {`"dev":1`, `"dev":-1`}, {`"ino":2,`, ``},
	{`"pending":"`, `"pending":"x`},
	// Another spelling of the same JSON value.
	{`/`, `\/`}, {`s`, `\u0073`}, {"ä", `\u00e4`}, {"\u2028", `\u2028`},
}

func TestEveryMutationIsRefused(t *testing.T) {
	used := make([]bool, len(mutations))
	for kind, text := range samples() {
		for i, m := range mutations {
			mutated := bytes.Replace(text, []byte(m.old), []byte(m.new), 1)
			if bytes.Equal(mutated, text) {
				continue
			}
			used[i] = true
			if kind == "config" && m.old == `http://127.0.0.1:` && m.new == `http://127.0.0.1:0` {
				mutated = bytes.Replace(text, []byte(m.old), []byte("http://127.0.0.1:0"), 1) // :00 here
			}
			refused(t, fmt.Sprintf("%s with %s for %s", kind, m.new, m.old), decoders[kind], mutated)
		}
	}
	for i, ok := range used {
		if !ok {
			t.Errorf("no file has %s", mutations[i].old)
		}
	}
}

// member is one member of an object whose value holds no other.
var member = regexp.MustCompile(`"[a-zA-Z]+":("[^"\\]*"|-?[0-9]+)`)

// TestEveryKeyIsNeededOnceInItsPlace takes away, doubles and moves each member of each file, cuts it everywhere and adds to it.
func TestEveryKeyIsNeededOnceInItsPlace(t *testing.T) {
	for kind, text := range samples() {
		for _, at := range member.FindAllIndex(text, -1) {
			m := string(text[at[0]:at[1]])
			if strings.HasPrefix(m, `"pending"`) {
				continue
			}
			without := strings.NewReplacer(",,", ",", "{,", "{", ",}", "}").Replace(string(text[:at[0]]) + string(text[at[1]:]))
			refused(t, kind+" without "+m, decoders[kind], []byte(without))
			refused(t, kind+" with two "+m, decoders[kind], []byte(string(text[:at[1]])+","+m+string(text[at[1]:])))
			if !strings.HasPrefix(without, "{"+m) && string(text[1:at[1]]) != m {
				refused(t, kind+" beginning with "+m, decoders[kind], []byte("{"+m+","+without[1:]))
			}
		}
		for i := range text {
			refused(t, fmt.Sprintf("%s cut at %d", kind, i), decoders[kind], text[:i])
		}
		for _, more := range []string{"\n", " ", "x", "\x00", "{}", string(text)} {
			refused(t, kind+" and more", decoders[kind], append(bytes.Clone(text), more...))
			refused(t, "more and "+kind, decoders[kind], append([]byte(more), text...))
		}
		for other, read := range decoders {
			if other != kind {
				refused(t, kind+" as "+other, read, text)
			}
		}
	}
}

func refused(t *testing.T, what string, read func([]byte) ([]byte, error), text []byte) {
	t.Helper()
	_, err := read(text)
	var fault *strictjson.Error
	if !errors.As(err, &fault) {
		t.Errorf("%s: %v\n%.300q", what, err, text)
	}
}

// FuzzRegistryFiles: whatever a decoder takes is exactly what it would write, and what it refuses has a fault. Any text is
// read by every decoder.
func FuzzRegistryFiles(f *testing.F) {
	for _, text := range samples() {
		f.Add(text)
		for _, m := range mutations {
			if mutated := bytes.Replace(text, []byte(m.old), []byte(m.new), 1); len(mutated) < 2000 && !bytes.Equal(mutated, text) {
				f.Add(mutated)
			}
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		readers := 0
		for kind, read := range decoders {
			written, err := read(text)
			var fault *strictjson.Error
			switch {
			case err == nil && !bytes.Equal(written, text):
				t.Fatalf("%s takes %q and writes %q", kind, text, written)
			case err == nil:
				readers++
			case !errors.As(err, &fault) || fault.Offset > int64(len(text)):
				t.Fatalf("%s: %#v", kind, err)
			}
		}
		if readers > 1 {
			t.Fatalf("%d kinds of file take %q", readers, text)
		}
	})
}
