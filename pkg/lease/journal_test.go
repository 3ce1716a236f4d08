package lease

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"

	"holdfast/pkg/regfile"
	"holdfast/pkg/strictjson"
)

// line is a journal line of that operation and number.
func line(op Op, fence uint64) string {
	b, err := strictjson.Line(Entry{Fence: fence, Op: op, HolderID: "h", Token: fmt.Sprintf("t%d", fence), At: FormatTime(t0), Hostname: "vm"})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// filler is lines of a lease without a fence token, as a renewal of another implementation's leaves them, of at least
// size bytes.
func filler(size int) string {
	one := line(OpRenewed, 0)
	return strings.Repeat(one, size/len(one)+1)
}

// The number is one more than the highest in the journal and the lease being replaced, wherever in the journal the
// highest is and whatever lies after it.
func TestNextFenceTokenFollowsTheHighest(t *testing.T) {
	nuls := strings.Repeat("\x00", 5000)
	for _, c := range []struct {
		name    string
		journal string
		lease   *Lease
		want    uint64
	}{
		{"no journal", "", nil, 1},
		{"one line", line(OpAcquired, 41), nil, 42},
		{"a release at the end", line(OpAcquired, 41) + line(OpReleased, 41), nil, 42},
		{"the lease has a higher one", line(OpAcquired, 3), expired(), 8},
		{"the lease has a lower one", line(OpAcquired, 41), expired(), 42},
		{"no journal, but a lease", "", expired(), 8},
		{"a compacted line", line(OpCompacted, 99), nil, 100},
		{"a line void because its number is too low", line(OpAcquired, 41) + line(OpAcquired, 40), nil, 42},
		{"a void line after a window of foreign renewals", line(OpAcquired, 41) + filler(5000) + line(OpAcquired, 3), nil, 42},
		{"void lines before and after such a window", line(OpAcquired, 41) + line(OpAcquired, 2) + filler(5000) + line(OpAcquired, 3), nil, 42},
		{"an operation of a later version", line(OpAcquired, 41) + line("hibernated", 50), nil, 51},
		{"renewals of a foreign lease fill the window", line(OpAcquired, 41) + filler(5000), nil, 42},
		{"they fill 64 windows", line(OpAcquired, 41) + filler(64*4096), nil, 42},
		{"the first line of all is the anchor, exactly at the window", anchoredAt(tailWindow), nil, 42},
		{"the anchor is cut by the window by one byte", anchoredAt(tailWindow + 1), nil, 42},
		{"the anchor begins one byte inside the window", anchoredAt(tailWindow - 1), nil, 42},
		{"a damaged line in between", line(OpAcquired, 41) + "garbage\n" + line(OpRenewed, 41), nil, 42},
		{"a line of NULs after a power cut", line(OpAcquired, 41) + "\x00\x00\n", nil, 42},
		{"a NUL-filled tail longer than the window", line(OpAcquired, 41) + nuls, nil, 42},
		{"a torn last line", line(OpAcquired, 41) + `{"fence":42,"op":"acq`, nil, 42},
		{"a last line that lacks only its newline", line(OpAcquired, 41) + strings.TrimSuffix(line(OpAcquired, 42), "\n"), nil, 43},
		{"members of a later version", `{"fence":41,"op":"acquired","region":"eu","holderId":"h"}` + "\n", nil, 42},
		{"a fence token that is no number is damage", line(OpAcquired, 41) + `{"fence":"99","op":"acquired"}` + "\n", nil, 42},
		{"a fence token that is too high is damage", line(OpAcquired, 41) + `{"fence":9007199254740992,"op":"acquired"}` + "\n", nil, 42},
		{"the last but one", line(OpAcquired, MaxFence-1), nil, MaxFence},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			if c.journal != "" {
				r.write(r.at(".journal"), []byte(c.journal))
			}
			if c.lease != nil {
				r.plant(c.lease.Encode())
			}
			out, err := takeOver(r.player("alice"))
			succeeded(t, out, err)
			equal(t, "the fence token", out.Lease.Fence, c.want)
			equal(t, "the one in the file", r.lease().Fence, c.want)
			after := r.bytes(".journal")
			if !strings.HasPrefix(after, c.journal) {
				t.Fatal("what the journal had was changed")
			}
			added := after[len(c.journal):]
			if torn := c.journal != "" && !strings.HasSuffix(c.journal, "\n"); torn != strings.HasPrefix(added, "\n") {
				t.Errorf("a torn last line is %v, and was added: %q", torn, added)
			}
			e, err := parseEntry([]byte(strings.TrimPrefix(added, "\n")))
			if err != nil {
				t.Fatal(err)
			}
			want := Entry{c.want, OpAcquired, "alice-1", "alice-2", FormatTime(t0), "host-of-alice", ""}
			if c.lease != nil {
				want.Op = OpTakenOver
			}
			equal(t, "the line", e, want)
			h, err := r.player("reader").History()
			if err != nil {
				t.Fatal(err)
			}
			if last := h.Records[len(h.Records)-1]; last.Void || last.Unconfirmed {
				t.Errorf("the history doubts the last line: %+v", last)
			}
		})
	}
}

// anchoredAt is a journal of which only the last size bytes do not tell the number: a line of a foreign lease's renewal
// whose label makes it just so long that the anchor begins size bytes before the end.
func anchoredAt(size int) string {
	anchor := line(OpAcquired, 41)
	rest := filler(size / 2)
	pad := line(OpRenewed, 0)
	n := size - len(anchor) - len(rest) - len(pad)
	return line(OpAcquired, 7) + anchor + rest + strings.Replace(pad, `"h"`, `"h`+strings.Repeat("h", n)+`"`, 1)
}

// Without a readable line nobody knows which numbers were used: that is told, and nothing is written.
func TestJournalWithoutAReadableLineIsCorrupt(t *testing.T) {
	for _, c := range []struct {
		name, journal string
		fault         strictjson.Fault
	}{
		{"a torn line alone", `{"fence":1,"op":"acq`, strictjson.Truncated},
		{"a whole line without its newline", strings.TrimSuffix(line(OpAcquired, 1), "\n"), strictjson.Truncated},
		{"a newline", "\n", strictjson.Empty},
		{"NULs", strings.Repeat("\x00", 10000), strictjson.Truncated},
		{"garbage", "garbage\nand more\n", strictjson.Syntax},
		{"lines of something else", `{"level":"info"}` + "\n", strictjson.Shape},
		{"a carriage return at each end", strings.ReplaceAll(line(OpAcquired, 1), "\n", "\r\n"), strictjson.CRLF},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.write(r.at(".journal"), []byte(c.journal))
			p := r.player("alice")
			p.opts.NewID = uuid.NewString
			_, err := acquire(p)
			refusal := refused(t, err, CodeJournalCorrupt)
			equal(t, "the fault", refusal.Fault, c.fault)
			equal(t, "the path", refusal.Path, r.at(".journal"))
			equal(t, "the fingerprint", refusal.Fingerprint, regfile.Fingerprint([]byte(c.journal)))
			equal(t, "the journal", r.bytes(".journal"), c.journal)
			r.names("")
			r.tidy()

			_, err = p.History()
			equal(t, "history's fingerprint", refused(t, err, CodeJournalCorrupt).Fingerprint, refusal.Fingerprint)

			aside, err := p.SetAside(context.Background(), refusal.Fingerprint)
			if err != nil {
				t.Fatalf("set aside: %v", err)
			}
			equal(t, "what was moved", aside.From, r.at(".journal"))
			moved, err := os.ReadFile(aside.To)
			if err != nil || string(moved) != c.journal {
				t.Errorf("it moved %q, %v", moved, err)
			}
			out, err := acquire(p)
			equal(t, "the next fence token", succeeded(t, out, err).Lease.Fence, 1)
		})
	}
}

// An empty journal is no damage: a program may have been stopped right after another had truncated nothing at all.
func TestEmptyJournalIsANewOne(t *testing.T) {
	r := newRig(t)
	r.write(r.at(".journal"), nil)
	out, err := acquire(r.player("alice"))
	equal(t, "the fence token", succeeded(t, out, err).Lease.Fence, 1)
	equal(t, "the journal's lines", len(r.entries()), 1)
}

func TestFenceTokenIsExhaustedAtTheLargestExactInteger(t *testing.T) {
	for _, c := range []struct {
		name    string
		journal string
		fence   uint64 // of the expired lease
	}{
		{"in the journal", line(OpAcquired, MaxFence), 0},
		{"in the lease", "", MaxFence},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			if c.journal != "" {
				r.write(r.at(".journal"), []byte(c.journal))
			}
			l := expired()
			l.Fence = c.fence
			r.plant(l.Encode())
			p := r.player("alice")
			_, err := takeOver(p)
			refused(t, err, CodeFenceExhausted)
			equal(t, "the file", r.bytes(""), string(l.Encode()))
			equal(t, "the journal", r.bytes(".journal"), c.journal)
			out, err := releaseOf("old")(p)
			succeeded(t, out, err)
			r.tidy()
		})
	}
}

// Somebody else writes to the journal after the number was chosen and before the line is there: the number may be theirs
// as well, so this line is void, the answer is changed, and the next number is above both.
func TestNumberIsNotUsedWhenTheJournalMoved(t *testing.T) {
	for _, c := range []struct {
		name    string
		journal string
		theirs  string // appended meanwhile
		ours    string // what the history says of the line that came too late
	}{
		{"the same number", line(OpAcquired, 41), line(OpAcquired, 42), "void"},
		{"a higher one", line(OpAcquired, 41), line(OpAcquired, 99), "void"},
		{"only a renewal", line(OpAcquired, 41), line(OpRenewed, 41), "skipped"},
		{"half a line", line(OpAcquired, 41), `{"fence":42,"op"`, "unreadable"},
		{"a new journal", "", line(OpAcquired, 1), "unreadable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			if c.journal != "" {
				r.write(r.at(".journal"), []byte(c.journal))
			}
			p := r.player("alice")
			m := mutation{Store: p.Store, op: "acquire"}
			e := Entry{Op: OpAcquired, HolderID: "late", Token: "too late", At: FormatTime(t0)}
			var chosen uint64
			err := m.record(&e, func(highest uint64) error {
				chosen = highest + 1
				e.Fence = chosen
				r.write(r.at(".journal"), []byte(c.journal+c.theirs))
				return nil
			})
			refusal := refused(t, m.journalRefused(err), CodeChanged)
			if refusal.How != "somebody else wrote to its journal" || refusal.Written != nil {
				t.Errorf("it says %q, written %v", refusal.How, refusal.Written)
			}
			if !strings.HasPrefix(r.bytes(".journal"), c.journal+c.theirs) {
				t.Errorf("their line is gone:\n%s", r.bytes(".journal"))
			}
			out, err := acquire(p)
			fence := succeeded(t, out, err).Lease.Fence
			if c.ours != "unreadable" && fence <= chosen || strings.Contains(c.journal+c.theirs, fmt.Sprintf(`"fence":%d,"op":`, fence)) {
				t.Errorf("the next number is %d, and %d was chosen before", fence, chosen)
			}
			equal(t, "the line that came too late", voided(t, p, "too late"), c.ours)
		})
	}
}

// voided says what the history makes of the line with that token.
func voided(t *testing.T, p *player, token string) string {
	t.Helper()
	h, err := p.History()
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range h.Records {
		switch {
		case rec.Entry.Token == token && rec.Void:
			return "void"
		case rec.Entry.Token == token:
			return "skipped"
		}
	}
	return "unreadable"
}

// A window of ordinary lines is enough: the number is not looked for in the whole journal.
func TestTheLastWindowIsEnough(t *testing.T) {
	for name, last := range map[string]string{
		"acquires and releases": line(OpAcquired, 8) + line(OpReleased, 8) + line(OpAcquired, 9) + line(OpReleased, 9),
		"an acquire at the end": line(OpReleased, 8) + line(OpAcquired, 9),
		"renewals":              line(OpReleased, 8) + line(OpAcquired, 9) + line(OpRenewed, 9) + line(OpRenewed, 9),
		"takeovers":             line(OpTakenOver, 8) + line(OpTakenOver, 9),
	} {
		var end tail
		if fault := end.scan([]byte("half a line\n"+last), false, true); fault != nil || !end.enough || end.highest != 9 {
			t.Errorf("%s: %+v, %v", name, end, fault)
		}
	}
}
