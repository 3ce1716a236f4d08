//go:build linux

package holdfast_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"

	"golang.org/x/sys/unix"

	"holdfast/pkg/regfile"
)

// content is what a damaged or hostile file may hold.
type content struct {
	name  string
	bytes string
	fault string // what is wrong with it as a lease, as a stable word
}

func utf16Of(s string, order binary.AppendByteOrder) string {
	var b []byte
	for _, unit := range utf16.Encode([]rune(s)) {
		b = order.AppendUint16(b, unit)
	}
	return string(b)
}

// deep is an object with nested arrays, at least size bytes long.
func deep(levels, size int) string {
	open, closed := strings.Repeat("[", levels), strings.Repeat("]", levels)
	return `{"a":` + open + strings.Repeat(" ", max(0, size-2*levels-7)) + closed + "}\n"
}

// hostile are the contents of which none is a lease.
func hostile() []content {
	good := heldLease()
	with := func(old, new string) string {
		changed := strings.Replace(good, old, new, 1)
		if changed == good {
			panic("nothing to replace: " + old)
		}
		return changed
	}
	expiry := func(text string) string {
		before, after, _ := strings.Cut(good, `"expiresAt": "`)
		_, rest, _ := strings.Cut(after, `"`)
		return before + `"expiresAt": "` + text + `"` + rest
	}
	return []content{
		{"nothing", "", "empty"},
		{"1466 NULs", strings.Repeat("\x00", 1466), "nul-filled"},
		{"a lease and NULs after it", good + strings.Repeat("\x00", 512), "trailing-garbage"},
		{"a lease and another after it", good + good, "trailing-garbage"},
		{"half a lease", good[:len(good)/2], "truncated"},
		{"a byte order mark", "\ufeff" + good, "bom"},
		{"carriage returns", strings.ReplaceAll(good, "\n", "\r\n"), "crlf"},
		{"UTF-16, little endian", utf16Of("\ufeff"+good, binary.LittleEndian), "utf-16"},
		{"UTF-16, big endian", utf16Of("\ufeff"+good, binary.BigEndian), "utf-16"},
		{"UTF-16 without a mark, little endian", utf16Of(good, binary.LittleEndian), "utf-16"},
		{"UTF-16 without a mark, big endian", utf16Of(good, binary.BigEndian), "utf-16"},
		{"a member twice", with(`"hostname"`, `"holderId": "another", "hostname"`), "duplicate-key"},
		{"a byte that is not UTF-8", with("elsewhere", "else\xffwhere"), "invalid-utf8"},
		{"a bad byte in the middle", with(`"elsewhere"`, `x"elsewhere"`), "syntax"},
		{"65 levels", deep(64, 0), "too-deep"},
		{"100 000 levels in 1 MiB", deep(100_000, 1<<20), "too-deep"},
		{"an array", "[" + good + "]", "not-an-object"},
		{"another object", `{"entries": []}` + "\n", "shape"},
		{"an expiry without a zone", expiry("2099-01-02T03:04:05.000"), "shape"},
		{"an expiry in the year 0000", expiry("0000-01-02T03:04:05.000Z"), "shape"},
		{"an expiry in the year 10000", expiry("10000-01-02T03:04:05.000Z"), "shape"},
		{"an expiry after the year 9999 by its zone", expiry("9999-12-31T23:59:59.000-01:00"), "shape"},
		{"an expiry one second before 1970", expiry("1969-12-31T23:59:59.000Z"), "shape"},
		{"no holder's id", with(plantedHolder, ""), "shape"},
		{"no token", with(`"token"`, `"Token"`), "shape"},
		{"a duration of 0", with("900", "0"), "shape"},
		{"a duration of -1", with("900", "-1"), "shape"},
		{"a duration of 1e400", with("900", "1e400"), "shape"},
		{"a duration in quotes", with("900", `"900"`), "shape"},
		{"half a fence token", with(`"fence": 7`, `"fence": 7.5`), "shape"},
		{"a negative fence token", with(`"fence": 7`, `"fence": -7`), "shape"},
		{"the fence token 2^53", with(`"fence": 7`, `"fence": 9007199254740992`), "shape"},
		{"a label that is a number", with(`"fence": 7`, `"label": 7`), "shape"},
	}
}

// TestHostileLockIsNamedAndKept runs every verb that reads the lock over each content: each says the same, and nothing
// changes. Then the printed remedy moves the file aside with all its bytes, and the fleet works again.
func TestHostileLockIsNamedAndKept(t *testing.T) {
	for _, c := range hostile() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fleet, lock := fleetWith(t, "")
			must(t, os.WriteFile(lock, []byte(c.bytes), 0o640))
			fingerprint := regfile.Fingerprint([]byte(c.bytes))
			check := untouched(t, fleet)
			for _, v := range verbs {
				if v.looks[0] != "lock" || v.name == "set aside" {
					continue
				}
				a := ask(t, fleet, append([]string{"leasectl"}, v.argv...)...)
				a.is(65, "corrupt").has("fault", c.fault, "fingerprint", fingerprint, "path", "state/orchestrator.lock")
				check(v.name)
			}
			ask(t, fleet, "leasectl", "set-aside", "--fingerprint", regfile.Fingerprint([]byte("another"))).is(1, "fingerprint-mismatch")
			check("set-aside of another fingerprint")
			worksAgain(t, fleet, lock, lock, c.bytes)
		})
	}
}

// worksAgain follows the remedy for the broken file, finds all its bytes where they were moved to, and takes the lease with
// the next fence token, or any if the journal is what was broken.
func worksAgain(t *testing.T, fleet, lock, broken, bytes string) {
	t.Helper()
	verb := "status"
	if broken != lock {
		verb = "history"
	}
	moved := ask(t, fleet, "leasectl", verb).follow(fleet).is(0, "set-aside").text("movedTo")
	if got, err := os.ReadFile(filepath.Join(fleet, moved)); err != nil || string(got) != bytes {
		t.Errorf("%d of %d bytes were kept (%v)", len(got), len(bytes), err)
	}
	ask(t, fleet, "leasectl", "status").is(0, "free")
	want := fmt.Sprint(plantedFence + 1)
	if broken != lock {
		want = "1"
	}
	ask(t, fleet, "leasectl", "acquire").is(0, "acquired").has("lease.fence", want)
	nothingLeft(t, lock)
}

// TestEnormousLockIsNotRead covers files that no program should take into memory.
func TestEnormousLockIsNotRead(t *testing.T) {
	for name, size := range map[string]int64{"one byte too many": 1<<20 + 1, "2 MB": 2 << 20, "5 GB": 5 << 30} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fleet, lock := fleetWith(t, deep(100_000, 0))
			must(t, os.Truncate(lock, size))
			inode := inodeOf(t, lock)
			check := untouched(t, fleet)
			for _, v := range verbs {
				if v.looks[0] != "lock" || v.name == "set aside" {
					continue
				}
				a := ask(t, fleet, append([]string{"leasectl"}, v.argv...)...)
				a.is(65, "too-large").has("limit", fmt.Sprint(float64(1<<20)))
				if !strings.HasPrefix(a.text("fingerprint"), "stat:") {
					t.Errorf("%s: fingerprint %q", v.name, a.text("fingerprint"))
				}
				check(v.name)
			}
			moved := ask(t, fleet, "leasectl", "status").follow(fleet).is(0, "set-aside").text("movedTo")
			if got := inodeOf(t, filepath.Join(fleet, moved)); got != inode {
				t.Errorf("inode %d was moved, not %d", got, inode)
			}
			ask(t, fleet, "leasectl", "acquire").is(0, "acquired")
		})
	}
}

func inodeOf(t *testing.T, path string) uint64 {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Lstat(path, &st))
	return st.Ino
}

// TestHostileJournalIsNamedAndKept: without one readable line nothing tells the next fence token, so what needs one is
// refused. What does not goes on, and says that its line is missing.
func TestHostileJournalIsNamedAndKept(t *testing.T) {
	line := strings.TrimSuffix(plantedJournal, "\n")
	for _, c := range []content{
		{name: "1466 NULs", bytes: strings.Repeat("\x00", 1466)},
		{name: "half a line", bytes: line[:len(line)/2]},
		{name: "a byte order mark", bytes: "\ufeff" + plantedJournal},
		{name: "carriage returns", bytes: line + "\r\n"},
		{name: "UTF-16", bytes: utf16Of("\ufeff"+plantedJournal, binary.LittleEndian)},
		{name: "a member twice", bytes: `{"fence":7,` + plantedJournal[1:]},
		{name: "a byte that is not UTF-8", bytes: strings.Replace(plantedJournal, "elsewhere", "\xff", 1)},
		{name: "100 000 levels", bytes: strings.ReplaceAll(deep(100_000, 0), "\n", "") + "\n"},
		{name: "half a fence token", bytes: strings.Replace(plantedJournal, ":7,", ":7.5,", 1)},
		{name: "a negative fence token", bytes: strings.Replace(plantedJournal, ":7,", ":-7,", 1)},
		{name: "the fence token 2^53", bytes: strings.Replace(plantedJournal, ":7,", ":9007199254740992,", 1)},
		{name: "a fence token in quotes", bytes: strings.Replace(plantedJournal, ":7,", `:"7",`, 1)},
		{name: "many lines of something else", bytes: strings.Repeat("Jan  1 00:00:00 host daemon: started\n", 1000)},
		{name: "one line of 1 MiB", bytes: strings.Repeat("x", 1<<20)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fingerprint := regfile.Fingerprint([]byte(c.bytes))
			for _, v := range verbs {
				fleet, lock := fleetWith(t, v.lease())
				must(t, os.WriteFile(lock+".journal", []byte(c.bytes), 0o640))
				check := untouched(t, fleet)
				a := ask(t, fleet, append([]string{"leasectl"}, v.argv...)...)
				switch v.name {
				case "acquire", "take over", "history", "status", "list":
					a.is(65, "journal-corrupt").has("fingerprint", fingerprint, "path", "state/orchestrator.lock.journal")
					if a.text("fault") == "" {
						t.Errorf("no fault in %s", a.stdout)
					}
					check(v.name)
				case "renew", "release":
					a.is(v.status, v.code)
					if !strings.Contains(a.stderr, "warning: the journal lacks the line") || a.text("warnings") == "" {
						t.Errorf("no warning: %s%s", a.stdout, a.stderr)
					}
				default:
					a.is(v.status, v.code)
					check(v.name)
				}
				nothingLeft(t, lock)
			}
			fleet, lock := fleetWith(t, "")
			must(t, os.WriteFile(lock+".journal", []byte(c.bytes), 0o640))
			worksAgain(t, fleet, lock, lock+".journal", c.bytes)
		})
	}
}

// TestDamagedJournalStillNumbers: as long as one line can be read the number goes on from there.
func TestDamagedJournalStillNumbers(t *testing.T) {
	for name, journal := range map[string]string{
		"torn by a power cut":     plantedJournal + plantedJournal[:40],
		"NULs after the line":     plantedJournal + strings.Repeat("\x00", 512),
		"garbage before the line": strings.Repeat("\x00\xff\n", 3000) + plantedJournal,
		"garbage after the line":  plantedJournal + strings.Repeat("\x00\xff\n", 3000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fleet, lock := fleetWith(t, "")
			must(t, os.WriteFile(lock+".journal", []byte(journal), 0o644))
			ask(t, fleet, "leasectl", "acquire").is(0, "acquired").has("lease.fence", fmt.Sprint(plantedFence+1))
			got, err := os.ReadFile(lock + ".journal")
			if err != nil || !strings.HasPrefix(string(got), journal) {
				t.Errorf("the journal was rewritten (%v)", err)
			}
			a := ask(t, fleet, "leasectl", "history").is(0, "entry").has("entry.fence", fmt.Sprint(plantedFence+1))
			if !strings.Contains(a.stderr, "unreadable lines") {
				t.Errorf("history does not tell of the damage: %s", a.stderr)
			}
		})
	}
}

// TestExhaustedFenceTokenIsRefused: the highest token that every JSON reader keeps exactly is the last one.
func TestExhaustedFenceTokenIsRefused(t *testing.T) {
	fleet, lock := fleetWith(t, "")
	must(t, os.WriteFile(lock+".journal", []byte(strings.Replace(plantedJournal, ":7,", ":9007199254740991,", 1)), 0o644))
	check := untouched(t, fleet)
	ask(t, fleet, "leasectl", "acquire").is(1, "fence-exhausted")
	check("acquire")
}

// TestEnormousJournalIsNotRead is a sparse file of 5 GB in the journal's place.
func TestEnormousJournalIsNotRead(t *testing.T) {
	for _, v := range verbs {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			fleet, lock := fleetWith(t, v.lease())
			must(t, os.Truncate(lock+".journal", 5<<30))
			check := untouched(t, fleet)
			a := ask(t, fleet, append([]string{"leasectl"}, v.argv...)...)
			switch v.name {
			case "acquire", "take over", "history", "status", "list":
				a.is(65, "too-large").has("path", "state/orchestrator.lock.journal")
				check(v.name)
				a.follow(fleet).is(0, "set-aside")
				ask(t, fleet, append([]string{"leasectl"}, v.argv...)...)
			default:
				a.is(v.status, v.code)
			}
			nothingLeft(t, lock)
		})
	}
}

// TestHostileClaimIsUnproven: whatever a claim holds, its name alone excludes. It is waited for, inspected, and cleared by
// force with the printed command alone.
func TestHostileClaimIsUnproven(t *testing.T) {
	contents := []content{{name: "5 GB"}}
	seen := map[string]bool{}
	for _, c := range hostile() {
		if !seen[c.fault] {
			contents = append(contents, c)
			seen[c.fault] = true
		}
	}
	var rest []func()
	for _, c := range contents {
		fleet, lock := fleetWith(t, heldLease())
		must(t, os.WriteFile(lock+".mutex", []byte(c.bytes), 0o600))
		if c.name == "5 GB" {
			must(t, os.Truncate(lock+".mutex", 5<<30))
		}
		check := untouched(t, fleet)
		inspected := ask(t, fleet, "leasectl", "claim", "inspect").is(0, "unproven")
		if inspected.text("claim.fingerprint") == "" {
			t.Errorf("%s: no fingerprint: %s", c.name, inspected.stdout)
		}
		ask(t, fleet, "leasectl", "status").is(0, "held").has("claim.state", "unproven")
		ask(t, fleet, "leasectl", "verify", "--holder", plantedHolder).is(0, "holds")
		ask(t, fleet, "leasectl", "claim", "clear", "--token", "another").is(1, "claim-mismatch")
		check(c.name)
		renewal := begin(t, fleet, "leasectl", "renew", "--holder", plantedHolder)
		rest = append(rest, func() {
			renewal().is(75, "claim-timeout")
			check(c.name)
			inspected.follow(fleet).is(0, "cleared")
			ask(t, fleet, "leasectl", "renew", "--holder", plantedHolder).is(0, "renewed")
			nothingLeft(t, lock)
		})
	}
	for _, finish := range rest { // each waits the 5 s that a claim is waited for, all of them at once
		finish()
	}
}

// TestLockThatGrowsIsNotReadForEver is a writer that never stops.
func TestLockThatGrowsIsNotReadForEver(t *testing.T) {
	fleet, lock := fleetWith(t, "{")
	f, err := os.OpenFile(lock, os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		defer f.Close()
		for block := []byte(strings.Repeat(" ", 512)); ; {
			select {
			case <-stop:
				return
			default:
				_, _ = f.Write(block)
				if info, err := f.Stat(); err == nil && info.Size() > 64<<20 {
					_ = f.Truncate(1)
				}
			}
		}
	})
	defer writer.Wait()
	defer close(stop)
	for range 20 {
		a := ask(t, fleet, "leasectl", "status")
		switch a.text("code") {
		case "corrupt", "unstable", "too-large":
			a.is(65, a.text("code"))
		default:
			t.Errorf("status %d: %s", a.status, a.stdout)
		}
	}
}

// TestUnusualLeasesAreLeases: what another program may write in good faith is read.
func TestUnusualLeasesAreLeases(t *testing.T) {
	good := heldLease()
	until := time.Now().Add(time.Hour)
	for name, text := range map[string]string{
		"a zone":               strings.Replace(leaseUntil(until), until.UTC().Format("2006-01-02T15:04:05.000Z"), until.In(time.FixedZone("", 19800)).Format("2006-01-02T15:04:05.000-07:00"), 1),
		"no fence token":       strings.Replace(good, ",\n  \"fence\": 7", "", 1),
		"unknown members":      strings.Replace(good, `"fence"`, `"other": {"a": [1]}, "fence"`, 1),
		"one line":             strings.ReplaceAll(good, "\n", ""),
		"a fraction of second": strings.Replace(good, "900", "0.5", 1),
		"an enormous duration": strings.Replace(good, "900", "1e300", 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fleet, _ := fleetWith(t, text)
			ask(t, fleet, "leasectl", "verify", "--holder", plantedHolder).is(0, "holds")
			ask(t, fleet, "leasectl", "status").is(0, "held")
			ask(t, fleet, "leasectl", "renew", "--holder", plantedHolder, "--duration", "20m").is(0, "renewed")
		})
	}
}
