package clikit

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/pkg/regfile"
	"holdfast/pkg/strictjson"
)

type sampleObject struct {
	Head
	Location
	Count    int               `json:"count"`
	Ratio    float64           `json:"ratio,omitzero"`
	Names    []string          `json:"names,omitzero"`
	On       *bool             `json:"on,omitzero"`
	Anything strictjson.Object `json:"anything,omitzero"`
	Inner    *struct {
		Size uint64 `json:"size"`
	} `json:"inner,omitzero"`
	Warned
	hidden int // not printed, so in no schema
}

func (o *sampleObject) Text() string { return fmt.Sprint(o.Count + o.hidden) }

func (o *sampleObject) Exports() []Export {
	return []Export{{"LEASE_LOCK", o.Path}, {"LEASE_FENCE", fmt.Sprint(o.Count)}}
}

func TestASchemaDescribesWhatIsPrinted(t *testing.T) {
	b, err := json.Marshal(schemaOf([]Object{&sampleObject{}}))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"$schema":"https://json-schema.org/draft/2020-12/schema","anyOf":[{"properties":{` +
		`"anything":{"type":"object"},"code":{"type":"string"},"count":{"type":"integer"},` +
		`"inner":{"properties":{"size":{"type":"integer"}},"required":["size"],"type":"object"},` +
		`"names":{"items":{"type":"string"},"type":"array"},"ok":{"type":"boolean"},"on":{"type":"boolean"},"op":{"type":"string"},` +
		`"path":{"type":"string"},"pathBytes":{"contentEncoding":"base64","type":"string"},"ratio":{"type":"number"},` +
		`"tool":{"type":"string"},"warnings":{"items":{"type":"string"},"type":"array"}},` +
		`"required":["tool","op","ok","code","count"],"type":"object"}]}`
	if string(b) != want {
		t.Errorf("%s\nwant\n%s", b, want)
	}
}

func TestEveryVerbHasASchemaWithItsRefusal(t *testing.T) {
	run := func(*Call) error { return nil }
	p := &Program{Name: "tool", Verbs: []*Verb{
		{Name: "do", Objects: []Object{&sampleObject{}}, Run: run},
		{Name: "group", Verbs: []*Verb{{Name: "inspect", Run: run}, {Name: "clear", Run: run}}},
	}}
	var ops []string
	err := p.EachSchema(func(op string, schema []byte) error {
		ops = append(ops, op)
		var s struct{ AnyOf []any }
		if err := json.Unmarshal(schema, &s); err != nil {
			return err
		}
		if want := map[string]int{"do": 2}[op] + map[string]int{"group-inspect": 1, "group-clear": 1, "usage": 1, "group": 1}[op]; len(s.AnyOf) != want {
			t.Errorf("%s: %d kinds of object, want %d", op, len(s.AnyOf), want)
		}
		return nil
	})
	if got := strings.Join(ops, " "); err != nil || got != "do group-inspect group-clear usage group" {
		t.Errorf("%s, %v", got, err)
	}
	stop := errors.New("stop")
	if err := p.EachSchema(func(string, []byte) error { return stop }); err != stop {
		t.Error(err)
	}
}

func TestAnObjectInEachFormat(t *testing.T) {
	done := &sampleObject{Head: Head{Tool: "tool", Op: "do", OK: true, Code: "acquired"}, Location: At("a b\u2028\xff"), Count: 3}
	for format, want := range map[Format]string{
		JSON:  `{"tool":"tool","op":"do","ok":true,"code":"acquired","path":"a b\u2028` + "\ufffd" + `","pathBytes":"YSBi4oCo/w==","count":3}` + "\n",
		Text:  "3\n",
		Shell: "export LEASE_LOCK=" + Quote("a b\u2028\xff") + "\nexport LEASE_FENCE=3\n",
	} {
		p := printer{format: format}
		if got, err := p.render(done); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", format, got, err, want)
		}
	}
	refused := &PlainRefusal{Head: Refused("claim-timeout"), Why: Why{Reason: "r\ns", Remedy: "leasectl status"}}
	for format, want := range map[Format]string{
		JSON:  `{"tool":"","op":"","ok":false,"code":"claim-timeout","reason":"r\ns","remedy":"leasectl status"}` + "\n",
		Text:  "remedy: leasectl status\n",
		Shell: "(exit 75)\n",
	} {
		p := printer{format: format}
		if got, err := p.render(refused); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", format, got, err, want)
		}
	}
	refused.Remedy = ""
	p := printer{format: Text}
	if got, err := p.render(refused); err != nil || got != "" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestEveryPrintedObjectIsShownToTheObserver(t *testing.T) {
	var seen []string
	p := printer{format: JSON, observed: func(line []byte) { seen = append(seen, string(line)) }}
	text, err := p.render(&sampleObject{Count: 7})
	if err != nil || len(seen) != 1 || seen[0]+"\n" != text {
		t.Errorf("%q, %q, %v", seen, text, err)
	}
}

func TestAnErrorBecomesARefusalWithItsFacts(t *testing.T) {
	uid := uint32(1000)
	for _, c := range []struct {
		err   error
		code  string
		facts FileFacts
		path  string
	}{
		{&regfile.Error{Code: regfile.CodeNotRegular, Path: "p", Kind: regfile.FIFO}, "not-regular", FileFacts{Kind: "fifo"}, "p"},
		{&regfile.Error{Code: regfile.CodeDirectoryInvalid, Path: "p", Kind: regfile.Regular}, "directory-invalid", FileFacts{Kind: "regular"}, "p"},
		{&regfile.Error{Code: regfile.CodeTooLarge, Path: "p", Kind: regfile.Regular, Limit: 5}, "too-large", FileFacts{Limit: 5}, "p"},
		{&regfile.Error{Code: regfile.CodeForeignOwner, Path: "p", UID: uid}, "foreign-owner", FileFacts{UID: &uid}, "p"},
		{regfile.IOError("write", "p", unix.ENOSPC), "io", FileFacts{Errno: "ENOSPC"}, "p"},
		{fmt.Errorf("while it was read: %w", regfile.IOError("read", "p", unix.EIO)), "io", FileFacts{Errno: "EIO"}, "p"},
		{Usagef("what is %q", "x"), "usage", FileFacts{}, ""},
		{errors.New("boom"), "bug", FileFacts{}, ""},
	} {
		r := refusalOf(c.err)
		if r.OK || r.Code != c.code || r.Reason != c.err.Error() || r.Path != c.path {
			t.Errorf("%v: %+v", c.err, r)
		}
		got, want := r.FileFacts, c.facts
		if (got.UID == nil) != (want.UID == nil) || got.UID != nil && *got.UID != *want.UID {
			t.Errorf("%v: uid %v", c.err, got.UID)
		}
		got.UID, want.UID = nil, nil
		if got != want {
			t.Errorf("%v: %+v, want %+v", c.err, got, want)
		}
	}
}

func TestAPathIsLossless(t *testing.T) {
	if l := At("a\xffb"); string(l.PathBytes) != "a\xffb" {
		t.Errorf("%+v", l)
	}
	if l := At("größe"); l.Path != "größe" || l.PathBytes != nil {
		t.Errorf("%+v", l)
	}
}

func TestOutputErrors(t *testing.T) {
	lost := &undeliverable{err: unix.EPIPE}
	if !Undeliverable(lost) || !Undeliverable(fmt.Errorf("x: %w", lost)) || Undeliverable(unix.EPIPE) || CodeOf(lost) != "output-undeliverable" {
		t.Error(lost)
	}
	still := StillHeld(lost, errors.New("the release failed"))
	if !Undeliverable(still) || !strings.Contains(still.Error(), "EPIPE") || !strings.Contains(still.Error(), "the release failed") {
		t.Error(still)
	}
	if got := (&interrupted{syscall.SIGTERM}).ExitStatus(); got != 128+15 {
		t.Errorf("status %d", got)
	}
}
