package holdfast_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"holdfast/internal/testkit/crash"
)

// crashScene is a fleet with a state, and the verb that is killed on it.
type crashScene struct {
	crashFleet
	args  []string
	judge func(crashAftermath) error
}

// crashAftermath is what a killed verb left, as far as it is the same question for every verb.
type crashAftermath struct {
	before, now crashFiles
	done        bool        // the verb was not killed: it must have done everything
	line        *crashEntry // the journal's new line; nil without one
	lease       *crashLease // the new lease; nil when the file is as it was, or gone
}

// crashBrokenName is what set-aside appends to a name.
var crashBrokenName = regexp.MustCompile(`^\.broken-[0-9a-f]{8}$`)

// scene is the crash test of the verb: the judgement, then the way out.
func (s crashScene) scene(t testing.TB) crash.Scene {
	before := s.files(t)
	return crash.Scene{Run: s.run(s.args...), Check: func(t testing.TB, at crash.Call) {
		a := s.aftermath(t, before, at)
		if err := s.judge(a); err != nil {
			t.Fatalf("%v\nbefore: %q\nnow: %q", err, crashBrief(before), crashBrief(a.now))
		}
		s.checkStatus(t, a.now)
		s.recover(t, a)
	}}
}

// aftermath reads what was left. The lease file is the old one, gone, or a complete one; the journal is the old one, byte
// for byte, or compacted, and at most one line more.
func (s crashScene) aftermath(t testing.TB, before crashFiles, at crash.Call) crashAftermath {
	t.Helper()
	a := crashAftermath{before: before, now: s.files(t), done: at.Name == crash.Exit}
	for suffix := range a.now {
		aside := before[""] == crashCorrupt && crashBrokenName.MatchString(suffix)
		if !aside && !slices.Contains([]string{"", ".mutex", ".stage", ".journal"}, suffix) {
			t.Fatalf("there is %s%s", crashLock, suffix)
		}
	}
	if a.now.has("") && !a.now.same(before, "") {
		l, err := parseCrashLease(a.now[""])
		if err != nil {
			t.Fatalf("the lease file is neither the old nor a new one: %v\n%s", err, a.now[""])
		}
		a.lease = &l
	}
	if _, _, err := parseCrashJournal(a.now[".journal"]); err != nil {
		t.Fatal(err)
	}
	added, err := crashJournalGrowth(before[".journal"], a.now[".journal"])
	if err != nil {
		t.Fatal(err)
	}
	switch len(added) {
	case 0:
	case 1:
		a.line = &added[0]
	default:
		t.Fatalf("the journal has %d new lines", len(added))
	}
	if a.done && (a.now.has(".mutex") && !before.has(".mutex") || a.now.has(".stage")) {
		t.Fatalf("a verb that ended by itself left %q", crashBrief(a.now))
	}
	return a
}

// crashJournalGrowth returns the lines that are new in a journal, which may have been compacted meanwhile.
func crashJournalGrowth(before, now string) ([]crashEntry, error) {
	rest, kept := strings.CutPrefix(now, before)
	if !kept {
		old, highest, err := parseCrashJournal(before)
		if err != nil {
			return nil, err
		}
		head, tail, _ := strings.Cut(now, "\n")
		entries, _, err := parseCrashJournal(head + "\n")
		if err != nil || entries[0].Op != "compacted" || entries[0].Fence != highest {
			return nil, fmt.Errorf("the journal was rewritten and begins with %q, and %d was its highest number", head, highest)
		}
		var last strings.Builder
		for _, e := range old[max(0, len(old)-100):] {
			last.WriteString(e.line())
		}
		if rest, kept = strings.CutPrefix(tail, last.String()); !kept {
			return nil, fmt.Errorf("the compacted journal lacks the last 100 lines: %.200q", tail)
		}
	}
	added, _, err := parseCrashJournal(rest)
	return added, err
}

// checkStatus: status shows what there is, with status 0 unless the lease file was broken from the start.
func (s crashScene) checkStatus(t testing.TB, now crashFiles) {
	t.Helper()
	st := s.leasectl(t, "status")
	status, want := 0, []string{"held", "expired"}
	switch {
	case !now.has(""):
		want = []string{"free"}
	case now[""] == crashCorrupt:
		status, want = 65, []string{"corrupt"}
	}
	if st.status != status || !slices.Contains(want, st.Code) {
		t.Fatalf("want status %d and one of %q: %s", status, want, st.output)
	}
	if (st.Claim != nil) != now.has(".mutex") || (st.Stage != nil) != now.has(".stage") {
		t.Fatalf("the files beside the lease are %q: %s", crashBrief(now), st.output)
	}
}

// recover goes the way that the program itself points out, until a new holder has the lease. At no moment are there two.
func (s crashScene) recover(t testing.TB, a crashAftermath) {
	t.Helper()
	st := s.leasectl(t, "status")
	if st.Code == "held" {
		s.must(t, 1, "held", "acquire", "--take-over")
	}
	s.clearClaim(t, a.now)
	if st.Code == "corrupt" {
		s.paste(t, st.Remedy).expect(t, 0, "set-aside")
	}
	if st.Code == "held" {
		s.must(t, 1, "held", "acquire", "--take-over")
		s.must(t, 0, "renewed", "renew", "--holder", st.Lease.HolderID)
		if left := s.files(t); left.has(".stage") || left.has(".mutex") {
			t.Fatalf("left over after the renewal: %q", crashBrief(left))
		}
		s.must(t, 0, "released", "release", "--holder", st.Lease.HolderID)
	}
	s.succeed(t, a)
}

// clearClaim follows the remedy that inspect prints. A claim without its evidence, which a crash between its creation and
// that leaves, can only be forced; every other one is proven abandoned.
func (s crashScene) clearClaim(t testing.TB, now crashFiles) {
	t.Helper()
	in := s.leasectl(t, "claim", "inspect")
	content, there := now[".mutex"]
	want, how := "absent", ""
	switch {
	case there && content == "":
		want, how = "unproven", " --force"
	case there:
		want, how = "abandoned", " --token "
	}
	if in.status != 0 || in.Code != want || !strings.Contains(in.Remedy, how) ||
		want == "abandoned" && strings.Contains(in.Remedy, "--force") {
		t.Fatalf("a claim with the content %q must be %s: %s", content, want, in.output)
	}
	if there {
		s.paste(t, in.Remedy).expect(t, 0, "cleared")
	}
}

// succeed acquires: with a higher number than any before, and nothing is left of the crash.
func (s crashScene) succeed(t testing.TB, a crashAftermath) {
	t.Helper()
	used, holders := crashNumbers(t, a.before, a.now)
	got := s.must(t, 0, "acquired", "acquire", "--take-over")
	if got.Lease.Fence <= used {
		t.Fatalf("the fence token %d is not higher than %d: %s", got.Lease.Fence, used, got.output)
	}
	after := s.files(t)
	l, err := parseCrashLease(after[""])
	if err != nil || l.HolderID != got.Lease.HolderID {
		t.Fatalf("the lease file is not the new holder's: %v\n%s", err, after[""])
	}
	if after.has(".mutex") || after.has(".stage") {
		t.Fatalf("left over: %q", crashBrief(after))
	}
	entries, highest, err := parseCrashJournal(after[".journal"])
	if err != nil || highest != l.Fence || entries[len(entries)-1].Token != l.Token {
		t.Fatalf("the journal does not end with the new holder's line (%v): %v", err, entries[max(0, len(entries)-3):])
	}
	for _, holder := range holders {
		if v := s.leasectl(t, "verify", "--holder", holder); v.status == 0 {
			t.Fatalf("there are two holders, %s and %s", holder, l.HolderID)
		}
	}
}

// crashNumbers returns the highest number that leases and journals carry, and who held the lease, or was about to.
func crashNumbers(t testing.TB, states ...crashFiles) (highest uint64, holders []string) {
	t.Helper()
	for _, files := range states {
		entries, top, err := parseCrashJournal(files[".journal"])
		if err != nil {
			t.Fatal(err)
		}
		highest = max(highest, top)
		if n := len(entries); n > 0 {
			holders = append(holders, entries[n-1].HolderID)
		}
		if l, err := parseCrashLease(files[""]); err == nil {
			highest = max(highest, l.Fence)
			holders = append(holders, l.HolderID)
		}
	}
	slices.Sort(holders)
	return highest, slices.Compact(holders)
}

// crashBrief shortens contents for a message.
func crashBrief(files crashFiles) crashFiles {
	short := crashFiles{}
	for name, content := range files {
		short[name] = content
		if len(content) > 600 {
			short[name] = content[:100] + " … " + content[len(content)-400:]
		}
	}
	return short
}
