package lease

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
	"holdfast/pkg/regfile"
	"holdfast/pkg/strictjson"
)

// FuzzParse: a lease file that is read is written as a lease file that reads the same, and its unknown members stay.
func FuzzParse(f *testing.F) {
	const known = `"holderId":"h","hostname":"vm","acquiredAt":"2026-11-30T05:03:22.123Z","expiresAt":"2026-11-30T05:18:22.123Z",` +
		`"durationSeconds":900,"token":"t"`
	for _, text := range []string{
		"{" + known + "}", "{" + known + `,"fence":42,"label":"nightly"}`, `{"more":[{"x":1.0}],` + known + `,"fence":0,"label":""}`,
		strings.Replace("{"+known+"}", `"2026-11-30T05:18:22.123Z"`, `"9999-12-31T23:59:59.999999999+00:01"`, 1),
		strings.Replace("{"+known+"}", `"2026-11-30T05:18:22.123Z"`, `"1970-01-01T00:00:00+00:00"`, 1),
		strings.Replace("{"+known+"}", `"2026-11-30T05:03:22.123Z"`, `"0000-01-01T00:00:00+23:59"`, 1),
		strings.Replace("{"+known+"}", "900", "5e-324", 1), strings.Replace("{"+known+"}", "900", "1.7976931348623157e308", 1),
		"{" + known + `,"fence":9007199254740992}`, "{" + known + `,"fence":-1}`, "{" + known + `,"fence":1.5}`, "", "{}", "{" + known,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		l, err := Parse(content)
		if err != nil {
			var fault *strictjson.Error
			if l != nil || !errors.As(err, &fault) {
				t.Fatalf("%v, %v", l, err)
			}
			return
		}
		if l.HolderID == "" || !(l.Duration > 0) || l.Fence > MaxFence || l.ExpiresAt.Year() < 1970 || l.ExpiresAt.Year() > 9999 {
			t.Fatalf("%+v", l)
		}
		written := l.Encode()
		again, err := Parse(written)
		if err != nil {
			t.Fatalf("%v: %s", err, written)
		}
		if !bytes.Equal(again.Encode(), written) {
			t.Fatalf("%s\nis written again as\n%s", written, again.Encode())
		}
		if again.HolderID != l.HolderID || again.Token != l.Token || again.Fence != l.Fence || again.Label != l.Label || again.Hostname != l.Hostname ||
			again.AcquiredAt != l.AcquiredAt || again.Duration != l.Duration || !again.ExpiresAt.Equal(l.ExpiresAt.Truncate(time.Millisecond)) {
			t.Fatalf("%+v\nreads again as\n%+v", l, again)
		}
		before, after := l.members.Names(), again.members.Names()
		if strings.Join(before, "\x00") != strings.Join(after, "\x00") {
			t.Fatalf("the members were %q and are %q", before, after)
		}
		shown := l.Members() // it has to be there for every lease that was read
		if strings.Join(shown.Names(), "\x00") != strings.Join(before, "\x00") {
			t.Fatalf("%q is shown as %q", before, shown.Names())
		}
		l.Who()
		l.RenewBy()
	})
}

// numbers looks at each line alone: how many can be read, with their newline or at all, and the highest number of these.
func numbers(journal []byte) (whole, readable int, highest uint64) {
	for text := range bytes.Lines(journal) {
		e, err := parseEntry(text)
		if err != nil {
			continue
		}
		readable++
		highest = max(highest, e.Fence)
		if text[len(text)-1] == '\n' {
			whole++
		}
	}
	return whole, readable, highest
}

// FuzzJournal: whatever a journal holds, the number that is chosen exceeds each that can be read in it, and compaction
// keeps the highest.
func FuzzJournal(f *testing.F) {
	for _, text := range []string{
		"", "\n", "\x00\x00\n", "garbage", "garbage\n", line(OpAcquired, 1), line(OpAcquired, 41) + line(OpRenewed, 41) + line(OpReleased, 41),
		line(OpAcquired, 41) + `{"fence":42,"op":"acq`, line(OpAcquired, 41) + strings.TrimSuffix(line(OpAcquired, 42), "\n"),
		strings.TrimSuffix(line(OpAcquired, 42), "\n"), line(OpCompacted, 9) + line(OpAcquired, 3) + "\n\n" + line(OpRenewed, 0),
		line(OpAcquired, MaxFence), line(OpAcquired, MaxFence+1), `{"op":"acquired","fence":7,"more":{}}` + "\n", `{"fence":7,"op":"later"}` + "\n",
		`{"fence": 8,"op":"acquired"}` + "\n" + `{"fence":3,"op":"acquired"}` + "\n", `{"fence":5,"fence":9,"op":"acquired"}` + "\n",
	} {
		f.Add([]byte(text))
	}
	dir := testkit.MemDir(f)
	d, err := regfile.OpenDir(dir)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, journal []byte) {
		whole, _, highest := numbers(journal)
		if len(journal) <= tailWindow {
			choosesAbove(t, d, journal, whole, highest)
		}
		keepsTheHighest(t, journal, whole, highest)
		remembersEveryLine(t, journal, whole)
	})
}

// choosesAbove reads the journal as a mutation does.
func choosesAbove(t *testing.T, d *regfile.Dir, journal []byte, whole int, highest uint64) {
	t.Helper()
	if err := os.WriteFile(d.Join("journal"), journal, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := d.Open("journal", unix.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, anchored := range []bool{true, false} {
		end, err := readTail(file, anchored)
		var fault *strictjson.Error
		switch {
		case len(journal) == 0 && err == nil:
		case whole == 0 && errors.As(err, &fault) && fault.Fault != "":
			continue
		case whole == 0 || err != nil:
			t.Fatalf("%d readable lines, %v", whole, err)
		}
		if end.size != int64(len(journal)) || end.torn != (len(journal) > 0 && journal[len(journal)-1] != '\n') {
			t.Fatalf("%+v of %d bytes", end, len(journal))
		}
		if anchored && end.highest != highest {
			t.Fatalf("the highest number is %d, and %d was found", highest, end.highest)
		}
	}
}

func keepsTheHighest(t *testing.T, journal []byte, whole int, highest uint64) {
	t.Helper()
	content, err := compacted(journal, "token", FormatTime(t0))
	if (err != nil) != (whole == 0) {
		t.Fatalf("%d readable lines, %v", whole, err)
	}
	if err != nil {
		return
	}
	wholeNow, readableNow, highestNow := numbers(content)
	kept := bytes.Count(content, []byte("\n")) - 1
	switch {
	case highestNow != highest:
		t.Fatalf("the highest number was %d and is %d", highest, highestNow)
	case wholeNow != kept+1, readableNow != kept+1, content[len(content)-1] != '\n':
		t.Fatalf("it has lines that cannot be read: %q", content)
	case kept > keptLines, kept < min(whole, keptLines) && len(journal) < keptBytes:
		t.Fatalf("of %d lines %d are kept", whole, kept)
	}
	var end tail
	if fault := end.scan(content, true, true); fault != nil || !end.readable || end.torn || end.highest != highest {
		t.Fatalf("%+v, %v", end, fault)
	}
	first, err := parseEntry(content[:bytes.IndexByte(content, '\n')])
	if err != nil || first.Op != OpCompacted || first.Fence != highest || first.Token != "token" {
		t.Fatalf("%+v, %v", first, err)
	}
}

func remembersEveryLine(t *testing.T, journal []byte, whole int) {
	t.Helper()
	h, fault := parseHistory(journal)
	lines := 0
	for range bytes.Lines(journal) {
		lines++
	}
	if len(h.Records) != whole || len(h.Records)+h.Unreadable != lines || (fault != nil) != (h.Unreadable > 0) {
		t.Fatalf("%d records and %d others of %d lines, %d of them readable: %v", len(h.Records), h.Unreadable, lines, whole, fault)
	}
	for _, r := range h.Records {
		if r.Void && r.Entry.Op != OpAcquired && r.Entry.Op != OpTakenOver {
			t.Fatalf("%+v", r)
		}
	}
}

// FuzzLongJournal: a journal as the protocol leaves it, with torn lines and the lines of leases without a number, may be
// much longer than the part that is read first; the number found is the highest all the same.
func FuzzLongJournal(f *testing.F) {
	f.Add([]byte{0, 1, 1, 1, 2, 3, 0}, uint16(4000))
	f.Add(bytes.Repeat([]byte{2}, 60), uint16(100))
	f.Add(append([]byte{0, 8}, bytes.Repeat([]byte{2, 3}, 100)...), uint16(200))
	f.Add(append([]byte{16}, bytes.Repeat([]byte{4}, 40)...), uint16(1000))
	dir := testkit.MemDir(f)
	d, err := regfile.OpenDir(dir)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, steps []byte, width uint16) {
		if len(steps) > 200 {
			return
		}
		journal, highest := grown(steps, int(width)%2000)
		if err := os.WriteFile(filepath.Join(dir, "journal"), journal, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := d.Open("journal", unix.O_RDONLY)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		end, err := readTail(file, true)
		if err != nil || end.highest != highest {
			t.Fatalf("the highest number is %d, and %d was found, %v", highest, end.highest, err)
		}
	})
}

// grown is a journal that begins with a lease and goes on as the steps say.
func grown(steps []byte, width int) (journal []byte, highest uint64) {
	label := strings.Repeat("x", width)
	add := func(op Op, fence uint64) {
		b, err := strictjson.Line(Entry{Fence: fence, Op: op, HolderID: "h", Token: "t", Label: label})
		if err != nil {
			panic(err)
		}
		journal = append(journal, b...)
	}
	highest = 1
	add(OpAcquired, highest)
	for _, step := range steps {
		switch step % 6 {
		case 0:
			highest += 1 + uint64(step/6) // numbers may be skipped
			add(OpAcquired, highest)
		case 1:
			highest++
			add(OpTakenOver, highest)
		case 2:
			add(OpRenewed, 0) // of a lease that another implementation wrote
		case 3:
			add(OpReleased, highest)
		case 4:
			journal = append(journal, `{"fence":1,"op":"acq`+label+"\n"...) // torn, and closed by the next
		case 5:
			journal = append(journal, "\x00\x00\n"...)
		}
	}
	return journal, highest
}
