package lease

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/pkg/regfile"
)

// long is a journal of numbers 1 to n, each acquired and released.
func long(n uint64) string {
	var b strings.Builder
	for fence := uint64(1); fence <= n; fence++ {
		b.WriteString(line(OpAcquired, fence))
		b.WriteString(line(OpReleased, fence))
	}
	return b.String()
}

// bound is a smaller one than a program has, which makes the tests fast.
const bound = 64 << 10

// compacting is a participant with that bound.
func (r *rig) compacting(name string) *player {
	r.Helper()
	p := r.player(name)
	p.iv.compactAbove = bound
	return p
}

// enough is the number with which long is just past the bound.
var enough = sync.OnceValue(func() uint64 {
	n := uint64(0)
	for size := 0; size <= bound; n++ {
		size += len(line(OpAcquired, n+1)) + len(line(OpReleased, n+1))
	}
	return n
})

func TestJournalPastItsBoundIsCompacted(t *testing.T) {
	for _, c := range []struct {
		name   string
		suffix string
		carry  uint64 // the number that the compacted line carries
		kept   int
	}{
		{"an ordinary one", "", enough(), 100},
		{"the highest was skipped", line(OpAcquired, 900000), 900000, 100},
		{"the highest is far back", strings.Repeat(line(OpRenewed, 3), 300), enough(), 100},
		{"damage among the last lines", "garbage\n\x00\x00\n", enough(), 100},
		{"a torn last line", `{"fence":77777`, enough(), 100},
		{"a last line that lacks only its newline", strings.TrimSuffix(line(OpAcquired, 900000), "\n"), 900000, 100},
		{"few lines, but long ones", hugeLines(), enough(), 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			before := long(enough()) + c.suffix
			r.write(r.at(".journal"), []byte(before))
			if err := os.Chmod(r.at(".journal"), 0o640); err != nil {
				t.Fatal(err)
			}
			out, err := acquire(r.compacting("alice"))
			equal(t, "the fence token", succeeded(t, out, err).Lease.Fence, c.carry+1)
			r.tidy()

			entries := r.entries()
			equal(t, "the first line", entries[0].Op, OpCompacted)
			equal(t, "its number", entries[0].Fence, c.carry)
			equal(t, "the last line", entries[len(entries)-1].HolderID, "alice-1")
			equal(t, "the lines kept", len(entries)-2, c.kept)
			kept := r.bytes(".journal")
			kept = kept[strings.Index(kept, "\n")+1:]
			kept = kept[:strings.LastIndex(strings.TrimSuffix(kept, "\n"), "\n")+1]
			whole := before[:strings.LastIndex(before, "\n")+1]
			if _, err := parseEntry([]byte(before[len(whole):])); err == nil {
				whole = before + "\n" // it lacked only that
			}
			if !strings.HasSuffix(strings.ReplaceAll(whole, "garbage\n\x00\x00\n", ""), kept) {
				t.Error("the lines kept are not the last ones")
			}
			if st, err := os.Stat(r.at(".journal")); err != nil || st.Mode().Perm() != 0o640 {
				t.Errorf("its mode: %v, %v", st.Mode(), err)
			}
			h, err := r.player("reader").History()
			if err != nil {
				t.Fatal(err)
			}
			for _, rec := range h.Records {
				if rec.Void || rec.Unconfirmed {
					t.Fatalf("the history doubts %+v", rec)
				}
			}
		})
	}
}

// hugeLines is two lines of which only both together are half as large as the bound.
func hugeLines() string {
	label := strings.Repeat("x", compactAbove/4-200)
	one := strings.Replace(line(OpRenewed, 5), `"h"`, `"h","label":"`+label+`"`, 1)
	return one + one + one[:len(one)/2] + "\n" + one + one
}

// A journal of exactly the bound is left; one byte more and the next line of any verb is preceded by a compaction.
func TestCompactionBeginsPastTheBound(t *testing.T) {
	pad := func(size int) string {
		rest := long(20)
		first := line(OpAcquired, 1)
		return strings.Replace(first, `"h"`, `"`+strings.Repeat("h", size-len(rest)-len(first)+1)+`"`, 1) + rest
	}
	for _, c := range []struct {
		name string
		size int
		do   act
		want bool
	}{
		{"acquire at the bound", compactAbove, takeOver, false},
		{"acquire past it", compactAbove + 1, takeOver, true},
		{"release at the bound", compactAbove, releaseOf("old"), false},
		{"release past it", compactAbove + 1, releaseOf("old"), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.plant(expired().Encode())
			r.write(r.at(".journal"), []byte(pad(c.size)))
			equal(t, "the size", len(r.bytes(".journal")), c.size)
			out, err := c.do(r.player("alice"))
			succeeded(t, out, err)
			equal(t, "compacted", r.entries()[0].Op == OpCompacted, c.want)
		})
	}
}

// A crash while the new journal is staged leaves the old one whole, and a stage that the next mutation removes. A crash
// right after it leaves the new one, which is as good.
func TestCrashDuringCompactionLosesNoNumber(t *testing.T) {
	before := long(enough())
	whole, err := compacted([]byte(before), "k", FormatTime(t0))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, journal, stage string }{
		{"the stage was created", before, ""},
		{"half of it was written", before, string(whole[:len(whole)/2])},
		{"all of it was written", before, string(whole)},
		{"it was renamed", string(whole), "-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.write(r.at(".journal"), []byte(c.journal))
			if c.stage != "-" {
				r.write(r.at(".stage"), []byte(c.stage))
			}
			out, err := acquire(r.compacting("alice"))
			equal(t, "the fence token", succeeded(t, out, err).Lease.Fence, enough()+1)
			r.tidy()
		})
	}
}

func TestCompactionRefusesWhatItCannotRead(t *testing.T) {
	r := newRig(t)
	garbage := bytes.Repeat([]byte("garbage\n"), bound/8+1)
	r.write(r.at(".journal"), garbage)
	_, err := acquire(r.compacting("alice"))
	equal(t, "the fingerprint", refused(t, err, CodeJournalCorrupt).Fingerprint, regfile.Fingerprint(garbage))
	equal(t, "the journal", r.bytes(".journal"), string(garbage))
	r.names("")
	r.tidy()

	r.write(r.at(".journal"), []byte(line(OpAcquired, 1)))
	if err := os.Truncate(r.at(".journal"), journalLimit+1); err != nil {
		t.Fatal(err)
	}
	_, err = acquire(r.compacting("alice"))
	equal(t, "the code of a journal that is far too large", errCode(err), regfile.CodeTooLarge)
	r.names("")
	r.tidy()
}

// When the compacted journal cannot be written an acquire is refused by the system's error, and the old journal stays.
func TestCompactionThatFailsLeavesTheJournal(t *testing.T) {
	r := newRig(t)
	before := long(enough())
	r.write(r.at(".journal"), []byte(before))
	p := r.compacting("alice")
	lift := func() {}
	p.meanwhile("claimed", func() { lift = limitFileSize(t, 1000) })
	_, err := acquire(p)
	lift()
	if !errors.Is(err, unix.EFBIG) {
		t.Fatalf("got %v", err)
	}
	equal(t, "the journal is unchanged", r.bytes(".journal") == before, true)
	r.names("")
	r.tidy()
}
