package fence

import (
	"slices"
	"strings"
	"sync"
	"unicode"
)

// badClaim is the text of a claim that nobody may read.
type badClaim struct{ name, text string }

// corpusBases are claims that between them have every member of every schema.
func corpusBases() []specClaim {
	base := func(schema int, state, lease, storage string) specClaim {
		r := specRow{schema, state, lease, storage}
		doc := r.claim()
		if storage != "none" && storage != "never-opened" {
			doc = doc.with("end.envCleanup", "failed").with("end.cause", "EIO")
		}
		return specClaim{r.String(), r, doc}
	}
	var all []specClaim
	for schema := 1; schema <= 3; schema++ {
		fenced := base(schema, "fenced", "never-held", "none")
		fenced.doc = fenced.doc.before("lease", "reclaimedFrom", jsReclaimed("leased", "held"))
		open := base(schema, "storage-open", "held", "none")
		all = append(all, fenced, base(schema, "leased", "held", "none"), open,
			base(schema, "closed", "released", "closed"), base(schema, "close-failed", "unknown", "unknown"))
		if schema > 1 {
			open.doc = open.doc.before("lease", "adoptedFrom", jsAdopted())
			reserved := base(schema, "reserved", "never-held", "none")
			reserved.doc = reservedOn(specRow{schema, "close-failed", "unknown", "failed"}, "present-attributed").
				before("reservation", "reclaimedFrom", jsReclaimed("close-failed", "unknown")).
				with("reservation.from.end.envCleanup", "failed").with("reservation.from.end.cause", "EIO")
			all = append(all, specClaim{open.name + " adopted", open.row, open.doc}, reserved)
		}
	}
	return all
}

// malformed is the corpus: every base changed in one way that makes it no claim.
var malformed = sync.OnceValue(func() (all []badClaim) {
	for _, base := range corpusBases() {
		add := func(what, text string) { all = append(all, badClaim{base.name + ": " + what, text}) }
		for _, path := range base.doc.paths() {
			breakMember(base.doc, path, add)
		}
		breakNesting(base.doc, add)
		breakText(base.doc.stringify(), add)
		breakOwners(base.doc, add)
		if base.doc.get("schemaVersion") == 2 {
			breakLayout(base.doc, add)
		}
		if base.doc.get("reservation") != nil {
			breakReservation(base.doc, add)
		}
		breakSchema(base.doc, add)
		breakEnd(base.doc, add)
	}
	return all
})

// lastName is the name of the member that a path leads to.
func lastName(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

var (
	optionalMembers = []string{"reclaimedFrom", "adoptedFrom", "envCleanup", "cause"}
	wordMembers     = []string{"state", "lease", "leaseOutcome", "storage", "from", "nativeLease", "envCleanup"}
	pathMembers     = []string{"resource", "directory", "profile", "cwd"}
	timeMembers     = []string{"at", "writtenAt"}
)

// breakMember changes one member in every way that its kind has.
func breakMember(o jsObject, path string, add func(what, text string)) {
	name, value := lastName(path), o.get(path)
	set := func(what string, v any) { add(path+" "+what, o.with(path, v).stringify()) }
	if !slices.Contains(optionalMembers, name) {
		add(path+" missing", o.without(path).stringify())
	}
	add(path+" twice", o.twice(path).stringify())
	add(path+" in another case", o.renamed(path, string(unicode.ToUpper(rune(name[0])))+name[1:]).stringify())
	set("null", jsRaw("null"))
	set("true", jsRaw("true"))
	set("an array", jsRaw("[]"))
	switch v := value.(type) {
	case string:
		set("a number", 1)
		set("an object", jsObject{})
		if name != "cause" {
			set("empty", "")
			set("with a lone surrogate", jsRaw(strings.TrimSuffix(jsText(v, ""), `"`)+`\ud800"`))
		}
		breakString(name, v, set)
	case int:
		set("a string", jsRaw(`"`+jsText(v, "")+`"`))
		set("a fraction", jsRaw(jsText(v, "")+".5"))
		set("an object", jsObject{})
		set("zero", 0)
		set("negative", -1)
		set("too large", jsRaw("2147483648"))
		set("far too large", jsRaw("9007199254740993"))
		set("with a leading zero", jsRaw("0"+jsText(v, "")))
	case jsObject:
		set("a string", "x")
		set("empty", jsObject{})
		add(path+" with a member more", o.with(path+".extra", 1).stringify())
	}
}

func breakString(name, v string, set func(what string, v any)) {
	if slices.Contains(wordMembers, name) {
		set("an unknown word", "lost")
		set("in capitals", strings.ToUpper(v))
		set("with a space", v+" ")
	}
	if slices.Contains(pathMembers, name) {
		set("relative", strings.TrimPrefix(v, "/"))
		set("relative with a dot", "."+v)
	}
	if slices.Contains(timeMembers, name) {
		set("no time", "yesterday")
		set("no month", "2026-13-30T05:03:22.123Z")
		set("without a zone", "2026-11-30T05:03:22.123")
		set("a date", "2026-11-30")
	}
	switch name {
	case "generation":
		set("in capitals", strings.Repeat("A", 32))
		set("of 31 digits", v[:31])
		set("of 33 digits", v+"0")
		set("no hex", "g"+v[1:])
		set("a UUID", "5c1e7f7e-9f3b-4a43-8a4b-0e6d8f1f2a3b")
	case "gardenId":
		for _, id := range []string{"20261130T050322", "20261130T050322-0A1B2C", "20261130T050322-0a1b2", "20261130T050322-0a1b2c3", "20261130-050322-0a1b2c", "2026113xT050322-0a1b2c"} {
			set(id, id)
		}
	}
}

func breakNesting(o jsObject, add func(what, text string)) {
	add("a member more", o.with("extra", 1).stringify())
	add("a member more, deep", o.with("extra", jsRaw(strings.Repeat(`{"a":`, 70)+"1"+strings.Repeat("}", 70))).stringify())
	add("a deep array for the owner", o.with("owner", jsRaw(strings.Repeat("[", 100)+strings.Repeat("]", 100))).stringify())
	add("a hostname of another kind in the owner", o.with("owner.hostName", "vm").stringify())
}

// breakText changes the text around and between the members.
func breakText(text string, add func(what, text string)) {
	lines := strings.SplitAfter(text, "\n")
	for i := 1; i < len(lines)-1; i++ {
		add("ends before "+strings.TrimSpace(lines[i])+" in line "+string(rune('A'+i)), strings.Join(lines[:i], ""))
	}
	add("ends inside a string", text[:strings.Index(text, `"vm"`)+2])
	add("ends before the last brace", strings.TrimSuffix(text, "}\n"))
	add("a second object after it", text+"{}\n")
	add("a brace after it", text+"}")
	add("a word after it", text+"x")
	add("NUL bytes after it", text+"\x00\x00")
	add("NUL bytes instead", strings.Repeat("\x00", len(text)))
	add("a NUL byte in a string", strings.Replace(text, `"vm"`, "\"v\x00m\"", 1))
	add("a byte order mark", "\ufeff"+text)
	add("carriage returns", strings.ReplaceAll(text, "\n", "\r\n"))
	add("a byte that is not UTF-8", strings.Replace(text, `"vm"`, "\"vm\xff\"", 1))
	add("a surrogate in UTF-8", strings.Replace(text, `"vm"`, "\"vm\xed\xa0\x80\"", 1))
	add("UTF-16", strings.Join(strings.Split(text, ""), "\x00")+"\x00")
	add("in an array", "["+text+"]")
	add("in a string", jsText(text, ""))
	add("a comma too many", strings.TrimSuffix(text, "\n}\n")+",\n}\n")
	add("a comment", "// claim\n"+text)
	add("single quotes", strings.ReplaceAll(text, `"`, "'"))
	for what, text := range map[string]string{"nothing": "", "white space": " \n\t\n", "null": "null\n", "an empty object": "{}\n"} {
		add(what+" instead", text)
	}
}

// breakOwners gives each owner a pid that only schema 3 has.
func breakOwners(o jsObject, add func(what, text string)) {
	for _, path := range o.paths() {
		if lastName(path) == "pid" && o.get("schemaVersion") != 3 {
			add(path+" 1", o.with(path, 1).stringify())
		}
	}
}

func breakSchema(o jsObject, add func(what, text string)) {
	for _, v := range []string{"0", "4", "-2", `"2"`, "2.0", "1e0", "99999999999999999999"} {
		add("schemaVersion "+v, o.with("schemaVersion", jsRaw(v)).stringify())
	}
	if o.get("schemaVersion") == 2 {
		add("schema 2 called 1", o.with("schemaVersion", 1).stringify())
		add("schema 2 called 3", o.with("schemaVersion", 3).stringify())
		return
	}
	add("called schema 2", o.with("schemaVersion", 2).stringify())
	add("a profile", o.with("selected.profile", specProfile).stringify())
	add("an empty profile", o.with("selected.profile", "").stringify())
	if o.get("schemaVersion") == 1 {
		add("adoptedFrom in schema 1", o.before("lease", "adoptedFrom", jsAdopted()).stringify())
		add("reserved in schema 1", o.with("state", "reserved").with("lease", "never-held").stringify())
		reservation := specRow{1, "reserved", "never-held", "none"}.claim().get("reservation")
		add("a reservation in schema 1", o.before("lease", "reservation", reservation).stringify())
	}
}
