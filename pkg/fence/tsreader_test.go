package fence

import (
	"encoding/json"
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"unicode/utf16"
)

// tsReader reads owner claims as the other implementation does, from the specification's words on it: exact members of
// schema 1 and 2, and the start keys that it can judge. It keeps the first thing that is wrong.
type tsReader struct{ err error }

func (r *tsReader) that(ok bool, format string, args ...any) {
	if !ok && r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// tsRead reads a claim; the error says why it is not one for that implementation.
func tsRead(text []byte) (map[string]any, error) {
	var c map[string]any
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, err
	}
	r := &tsReader{}
	schema, _ := c["schemaVersion"].(float64)
	r.that(schema == 1 || schema == 2, "schemaVersion %v", c["schemaVersion"])
	optional := "reclaimedFrom end"
	if schema == 2 {
		optional += " reservation adoptedFrom"
	}
	r.keys("claim", c, "schemaVersion resource selected state owner generation firstParticipation lease writtenAt", optional)
	r.absolute("resource", c["resource"])
	r.selected(c["selected"], schema)
	states := "fenced leased storage-open closed close-failed"
	if schema == 2 {
		states += " reserved"
	}
	r.word("state", c["state"], states)
	r.owner("owner", c["owner"])
	r.generation("generation", c["generation"])
	first := r.object("firstParticipation", c["firstParticipation"], "at generation from", "")
	r.text("firstParticipation.at", first["at"])
	r.generation("firstParticipation.generation", first["generation"])
	r.word("firstParticipation.from", first["from"], "fresh unarmed-existing")
	r.row(c)
	r.text("writtenAt", c["writtenAt"])
	if from, ok := c["reclaimedFrom"]; ok {
		o := r.object("reclaimedFrom", from, "generation state owner leaseOutcome", "")
		r.generation("reclaimedFrom.generation", o["generation"])
		r.word("reclaimedFrom.state", o["state"], "reserved fenced leased storage-open close-failed")
		r.owner("reclaimedFrom.owner", o["owner"])
		r.word("reclaimedFrom.leaseOutcome", o["leaseOutcome"], strings.Join(specLeases, " "))
	}
	if from, ok := c["adoptedFrom"]; ok {
		o := r.object("adoptedFrom", from, "generation owner", "")
		r.generation("adoptedFrom.generation", o["generation"])
		r.owner("adoptedFrom.owner", o["owner"])
		r.that(c["state"] != "reserved", "adopted and reserved")
	}
	_, reserved := c["reservation"]
	r.that(reserved == (c["state"] == "reserved"), "reservation on %v", c["state"])
	if reserved {
		r.reservation(c)
	}
	return c, r.err
}

// keys are exact: all that are required, none but those and the optional ones.
func (r *tsReader) keys(what string, o map[string]any, required, optional string) {
	for _, name := range strings.Fields(required) {
		_, ok := o[name]
		r.that(ok, "%s lacks %s", what, name)
	}
	known := strings.Fields(required + " " + optional)
	for name := range o {
		r.that(slices.Contains(known, name), "%s has %s", what, name)
	}
}

func (r *tsReader) object(what string, v any, required, optional string) map[string]any {
	o, ok := v.(map[string]any)
	r.that(ok, "%s is no object", what)
	r.keys(what, o, required, optional)
	return o
}

func (r *tsReader) text(what string, v any) string {
	s, _ := v.(string)
	r.that(s != "", "%s is %v", what, v)
	return s
}

func (r *tsReader) absolute(what string, v any) {
	r.that(strings.HasPrefix(r.text(what, v), "/"), "%s is %v", what, v)
}

func (r *tsReader) word(what string, v any, words string) {
	s, _ := v.(string)
	r.that(slices.Contains(strings.Fields(words), s), "%s is %v", what, v)
}

var (
	tsGeneration = regexp.MustCompile(`^[0-9a-f]{32}$`)
	tsGarden     = regexp.MustCompile(`^\d{8}T\d{6}-[0-9a-f]{6}$`)
)

func (r *tsReader) generation(what string, v any) {
	r.that(tsGeneration.MatchString(r.text(what, v)), "%s is %v", what, v)
}

func (r *tsReader) owner(what string, v any) {
	o := r.object(what, v, "pid startKey hostname", "")
	pid, _ := o["pid"].(float64)
	r.that(pid > 1 && pid == math.Trunc(pid), "%s.pid is %v", what, o["pid"])
	r.text(what+".startKey", o["startKey"])
	r.text(what+".hostname", o["hostname"])
}

func (r *tsReader) selected(v any, schema float64) map[string]any {
	if schema == 1 {
		o := r.object("selected", v, "n directory", "")
		r.text("selected.n", o["n"])
		r.absolute("selected.directory", o["directory"])
		return o
	}
	o := r.object("selected", v, "n directory profile", "")
	n, directory, profile := r.text("selected.n", o["n"]), r.text("selected.directory", o["directory"]), r.text("selected.profile", o["profile"])
	h := path.Base(path.Dir(directory))
	r.that(directory == path.Join(profile, "experimental", "durable-sessions", h, n), "%s is not of %s and %s", directory, profile, n)
	return o
}

// row checks state, lease and end of a claim or a donor by the table of schema 1 and 2.
func (r *tsReader) row(o map[string]any) {
	state, _ := o["state"].(string)
	lease, _ := o["lease"].(string)
	row := specRow{2, state, lease, "none"}
	if v, ok := o["end"]; ok {
		end := r.object("end", v, "at storage lease", "envCleanup cause")
		r.text("end.at", end["at"])
		row.storage = r.text("end.storage", end["storage"])
		r.that(end["lease"] == lease, "end.lease is %v", end["lease"])
		env, has := end["envCleanup"]
		r.that(!has || env == "failed" && row.storage != "never-opened", "end.envCleanup is %v", env)
		cause, has := end["cause"]
		text, isText := cause.(string)
		r.that(!has || isText && len(utf16.Encode([]rune(text))) <= 512, "end.cause is %v", cause)
	}
	r.that(row.possible(), "%s", row)
}

func (r *tsReader) reservation(c map[string]any) {
	o := r.object("reservation", c["reservation"], "gardenId n cwd resource profile attachIncarnation nativeLease from", "")
	selected, _ := c["selected"].(map[string]any)
	r.that(tsGarden.MatchString(r.text("gardenId", o["gardenId"])), "gardenId is %v", o["gardenId"])
	r.that(o["n"] == selected["n"] && o["resource"] == c["resource"] && o["profile"] == selected["profile"], "reservation of something else: %v", o)
	r.absolute("cwd", o["cwd"])
	r.text("attachIncarnation", o["attachIncarnation"])
	r.word("nativeLease", o["nativeLease"], "absent present-attributed")
	from := r.object("from", o["from"], "generation state owner lease selected", "end")
	r.generation("from.generation", from["generation"])
	r.owner("from.owner", from["owner"])
	r.that(from["state"] != "reserved", "a donor that is reserved")
	r.row(from)
	of := r.selected(from["selected"], 2)
	r.that(fmt.Sprint(of) == fmt.Sprint(selected), "a donor of %v", of)
	r.that(o["nativeLease"] == "absent" || from["lease"] == "held" || from["lease"] == "unknown", "attributed to %v", from["lease"])
}

var (
	tsLinuxKey = regexp.MustCompile(`^linux:\d+$`)
	tsPsKey    = regexp.MustCompile(`^ps:.+$`)
)

// tsJudge is its verdict on a recorded owner, on this host: it compares start keys as text, and only those it knows.
func tsJudge(owner map[string]any, hostname string, startKeyNow func(pid int) string) string {
	pid, _ := owner["pid"].(float64)
	key, _ := owner["startKey"].(string)
	switch {
	case owner["hostname"] != hostname:
		return "other-host"
	case !tsLinuxKey.MatchString(key) && !tsPsKey.MatchString(key):
		return "uncertain"
	case syscall.Kill(int(pid), 0) == syscall.ESRCH:
		return "dead"
	}
	now := startKeyNow(int(pid))
	switch {
	case now == "" || tsLinuxKey.MatchString(key) != tsLinuxKey.MatchString(now):
		return "uncertain"
	case now == key:
		return "live"
	}
	return "dead"
}
