package fence

import (
	"strings"
	"testing"
)

// breakLayout leaves the durable-session layout of schema 2 in every way.
func breakLayout(o jsObject, add func(what, text string)) {
	const below = specProfile + "/experimental/durable-sessions/"
	for what, directory := range map[string]string{
		"beside the profile":            "/home/u/other/experimental/durable-sessions/0123/s1",
		"the profile's name continued":  specProfile + "2/experimental/durable-sessions/0123/s1",
		"without H":                     below + "s1",
		"with an empty H":               below + "/s1",
		"with H of two names":           below + "a/b/s1",
		"with H a dot":                  below + "./s1",
		"with H two dots":               below + "../s1",
		"of another session":            below + "0123/s2",
		"of a longer session":           below + "0123/s11",
		"with a slash at the end":       below + "0123/s1/",
		"not clean":                     below + "0123/x/../s1",
		"with two slashes":              below + "0123//s1",
		"outside experimental":          specProfile + "/durable-sessions/0123/s1",
		"in another kind of experiment": specProfile + "/experimental/sessions/0123/s1",
		"the profile itself":            specProfile,
		"the root of the sessions":      strings.TrimSuffix(below, "/"),
	} {
		changed := o.with("selected.directory", directory)
		if o.get("reservation") != nil {
			changed = changed.with("reservation.from.selected.directory", directory)
		}
		add("a directory "+what, changed.stringify())
	}
	add("a profile of another", o.with("selected.profile", "/home/v").stringify())
	add("a session of another directory", o.with("selected.n", "s2").stringify())
}

// breakReservation lets the reservation of a reserved claim say something else than its claim or its donor.
func breakReservation(o jsObject, add func(what, text string)) {
	add("without its reservation", o.without("reservation").stringify())
	add("fenced with a reservation", o.with("state", "fenced").stringify())
	add("adopted", o.before("lease", "adoptedFrom", jsAdopted()).stringify())
	add("a reservation of another resource", o.with("reservation.resource", "/data/sessions/s2").stringify())
	add("a reservation of another session", o.with("reservation.n", "s2").stringify())
	add("a donor of another session", o.with("reservation.from.selected.n", "s2").stringify())
	add("a donor of another directory", o.with("reservation.from.selected.directory", specAlias).stringify())
	add("a donor that is reserved", o.with("reservation.from", donorRow(o, specRow{3, "reserved", "never-held", "none"})).stringify())
	add("a donor that has a reservation", o.with("reservation.from.reservation", jsObject{}).stringify())
	for _, lease := range []string{"never-held", "released", "failed"} {
		changed := o.with("reservation.from.lease", lease).with("reservation.from.end.lease", lease)
		add("attributed to a donor whose lease is "+lease, changed.stringify())
	}
	add("a donor whose end has another lease", o.with("reservation.from.end.lease", "failed").stringify())
	add("a donor without its end", o.without("reservation.from.end").stringify())
	if o.get("schemaVersion") == 2 {
		add("a reservation of another profile", o.with("reservation.profile", "/home/v").stringify())
		add("a donor of another profile", o.with("reservation.from.selected.profile", "/home/v").stringify())
		add("a donor without a profile", o.without("reservation.from.selected.profile").stringify())
	} else {
		add("a reservation with a profile", o.with("reservation.profile", specProfile).stringify())
		add("a donor with a profile", o.with("reservation.from.selected.profile", specProfile).stringify())
	}
}

func donorRow(o jsObject, r specRow) jsObject {
	from := o.get("reservation.from").(jsObject).with("state", r.state).with("lease", r.lease)
	return from.without("end")
}

// breakEnd says an end where there is none, too much of one, or a cause that is too long.
func breakEnd(o jsObject, add func(what, text string)) {
	path := "end"
	if o.get("reservation") != nil {
		path = "reservation.from.end"
	}
	if o.get(path) == nil {
		end := specRow{1, "closed", o.get("lease").(string), "never-opened"}.end()
		add("an end", o.before("writtenAt", "end", end).stringify())
		add("a reservation", o.before("lease", "reservation", specRow{3, "reserved", "never-held", "none"}.claim().get("reservation")).stringify())
		return
	}
	for what, cause := range map[string]string{
		"513 letters":                      strings.Repeat("x", 513),
		"513 units in 257 code points":     strings.Repeat("\U0001f600", 256) + "x",
		"512 letters and a lone surrogate": strings.Repeat("x", 512) + `\udc00`,
		"513 escapes":                      strings.Repeat(`\u0041`, 513),
	} {
		add("a cause of "+what, o.with(path+".cause", jsRaw(`"`+cause+`"`)).stringify())
	}
	add("never-opened with its environment", o.with(path+".storage", "never-opened").stringify())
	add("an environment that was cleared", o.with(path+".envCleanup", "done").stringify())
	add("an end without storage", o.without(path+".storage").stringify())
}

func TestEveryMalformedClaimIsRefused(t *testing.T) {
	seen := map[string]bool{}
	for _, bad := range malformed() {
		if seen[bad.name] {
			t.Errorf("%s is there twice", bad.name)
		}
		seen[bad.name] = true
		if complaint := notRefused(bad.text); complaint != "" {
			t.Errorf("%s: %s", bad.name, complaint)
		}
	}
	if t.Logf("%d malformed claims", len(seen)); len(seen) < 150 {
		t.Errorf("%d malformed claims are too few", len(seen))
	}
}

func TestTheCorpusIsMadeOfValidClaims(t *testing.T) {
	members := map[string]bool{}
	for _, base := range corpusBases() {
		base.doc.read(t)
		for _, path := range base.doc.paths() {
			members[path] = true
		}
	}
	for _, path := range []string{
		"selected.profile", "reclaimedFrom.leaseOutcome", "adoptedFrom.owner.pid", "end.envCleanup", "end.cause",
		"reservation.profile", "reservation.from.end.envCleanup", "reservation.from.end.cause", "reservation.from.selected.profile",
	} {
		if !members[path] {
			t.Errorf("no claim of the corpus has %s", path)
		}
	}
}

func TestWhatIsUnusualAndStillAClaim(t *testing.T) {
	ended := specRow{2, "close-failed", "unknown", "unknown"}.claim()
	three := specRow{3, "closed", "never-held", "closed"}.claim()
	reserved := reservedOn(specRow{3, "leased", "held", "none"}, "present-attributed").before("reservation", "reclaimedFrom", jsReclaimed("leased", "held"))
	quoted := func(s string) jsRaw { return jsRaw(`"` + s + `"`) }
	for name, text := range map[string]string{
		"pid 1 in schema 3":                 three.with("owner.pid", 1).stringify(),
		"pid 1 in reclaimedFrom, schema 3":  reserved.with("reclaimedFrom.owner.pid", 1).stringify(),
		"pid 1 of a donor, schema 3":        reserved.with("reservation.from.owner.pid", 1).stringify(),
		"pid 2 in schema 2":                 ended.with("owner.pid", 2).stringify(),
		"the largest pid":                   ended.with("owner.pid", 1<<31-1).stringify(),
		"a cause of 512 letters":            ended.with("end.cause", strings.Repeat("x", 512)).stringify(),
		"a cause of 256 pairs":              ended.with("end.cause", strings.Repeat("\U0001f600", 256)).stringify(),
		"a cause that was cut in a pair":    ended.with("end.cause", quoted(strings.Repeat("x", 511)+`\ud83d`)).stringify(),
		"a cause with a low surrogate":      ended.with("end.cause", quoted(`\udc00`)).stringify(),
		"a donor's cause with a surrogate":  reservedOn(specRow{2, "close-failed", "failed", "failed"}, "absent").with("reservation.from.end.cause", quoted(`\ud83d`)).stringify(),
		"an H that is no hash":              ended.with("selected.directory", specProfile+"/experimental/durable-sessions/x/s1").stringify(),
		"a profile at the root":             ended.with("selected.directory", "/experimental/durable-sessions/x/s1").with("selected.profile", "/").stringify(),
		"a start key of our own":            ended.with("owner.startKey", "linux:1@5c1e7f7e-9f3b-4a43-8a4b-0e6d8f1f2a3b/4026531836").stringify(),
		"a start key of nobody":             ended.with("owner.startKey", "plan9:?").stringify(),
		"other white space":                 strings.NewReplacer("\n", "", "\t", "").Replace(ended.stringify()),
		"members in another order":          ended.without("resource").with("resource", specResource).stringify(),
		"a name with an escape":             strings.Replace(ended.stringify(), `"state"`, `"st\u0061te"`, 1),
		"a word with an escape":             strings.Replace(ended.stringify(), `"unknown"`, `"unkn\u006fwn"`, 1),
		"a session of any letters":          three.with("selected.n", "Sitzung 1 – \U0001f600").stringify(),
		"a session other than its base":     three.with("selected.n", "another").stringify(),
		"an alias of the resource":          three.with("selected.directory", "/elsewhere").stringify(),
		"unarmed before":                    three.with("firstParticipation.from", "unarmed-existing").stringify(),
		"a cause with markup and U+2028":    ended.with("end.cause", quoted("<a> & \u2028 \\u0001")).stringify(),
		"a time without a fraction":         ended.with("writtenAt", "2026-11-30T05:03:22Z").stringify(),
		"a generation of digits only":       ended.with("generation", strings.Repeat("0", 32)).stringify(),
		"reclaimed from a reserved claim":   ended.before("lease", "reclaimedFrom", jsReclaimed("reserved", "never-held")).stringify(),
		"reclaimed and adopted, in order":   ended.before("lease", "reclaimedFrom", jsReclaimed("fenced", "never-held")).before("lease", "adoptedFrom", jsAdopted()).stringify(),
		"no newline at the end":             strings.TrimSuffix(ended.stringify(), "\n"),
		"a plain directory below a profile": three.with("selected.directory", specDirectory).stringify(),
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Decode([]byte(text))
			if err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			again, err := Decode(c.Encode())
			if err != nil || string(again.Encode()) != string(c.Encode()) {
				t.Errorf("does not read again as itself: %v\n%s", err, c.Encode())
			}
		})
	}
}
