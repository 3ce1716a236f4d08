package lease

import (
	"os"
	"strings"
	"testing"
	"time"
)

// A Store that has written to the journal knows its end. Whatever else happens to the file before its next line, the next
// fence token is the one that a Store which knows nothing would choose.
func TestWhatAStoreKnowsOfItsJournalYieldsToTheFile(t *testing.T) {
	for _, c := range []struct {
		name      string
		meanwhile func(t *testing.T, r *rig)
		want      uint64
	}{
		{"nothing happens", func(*testing.T, *rig) {}, 3},
		{"others acquire and release", func(t *testing.T, r *rig) { pairOf(t, r.player("bob")); pairOf(t, r.player("carol")) }, 5},
		{"a line is added", func(t *testing.T, r *rig) { r.edit(func(j string) string { return j + line(OpAcquired, 77) }) }, 78},
		{"half a line is added", func(t *testing.T, r *rig) { r.edit(func(j string) string { return j + `{"fence":77,` }) }, 3},
		{"the last line loses its newline", func(t *testing.T, r *rig) {
			r.edit(func(j string) string { return strings.TrimSuffix(j, "\n") })
		}, 3},
		{"a number is changed in place", func(t *testing.T, r *rig) { r.edit(numbered(9)) }, 10},
		{"the number of the last line, within one tick of the file's clock", func(t *testing.T, r *rig) {
			st := r.stat(".journal")
			r.edit(func(j string) string {
				last := strings.LastIndex(j, `{"fence":`)
				return j[:last] + numbered(9)(j[last:])
			})
			r.stamp(".journal", st)
		}, 10},
		{"a copy is put in its place", func(t *testing.T, r *rig) {
			st := r.stat(".journal")
			r.write(r.at(".copy"), []byte(numbered(9)(r.bytes(".journal"))))
			r.remove(".journal")
			if err := os.Rename(r.at(".copy"), r.at(".journal")); err != nil {
				t.Fatal(err)
			}
			r.stamp(".journal", st)
		}, 10},
		{"it is removed", func(t *testing.T, r *rig) { r.remove(".journal") }, 1},
		{"it is emptied", func(t *testing.T, r *rig) { r.edit(func(string) string { return "" }) }, 1},
		{"another compacts it", func(t *testing.T, r *rig) {
			bob := r.player("bob")
			bob.iv.compactAbove = 1
			pairOf(t, bob)
		}, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			alice := r.player("alice")
			pairOf(t, alice)
			pairOf(t, alice)
			if alice.journal.Load() == nil {
				t.Fatal("it remembers nothing")
			}
			c.meanwhile(t, r)
			out, err := acquire(alice)
			equal(t, "the fence token", succeeded(t, out, err).Lease.Fence, c.want)
		})
	}
}

// pairOf acquires and releases.
func pairOf(t *testing.T, p *player) {
	t.Helper()
	out, err := acquire(p)
	out, err = releaseOf(succeeded(t, out, err).Lease.HolderID)(p)
	succeeded(t, out, err)
}

// edit changes the journal in place.
func (r *rig) edit(change func(journal string) string) {
	r.Helper()
	r.write(r.at(".journal"), []byte(change(r.bytes(".journal"))))
}

// numbered gives the first line that number; the length stays.
func numbered(n byte) func(journal string) string {
	return func(j string) string {
		i := strings.Index(j, `{"fence":`) + len(`{"fence":`)
		return j[:i] + string('0'+n) + j[i+1:]
	}
}

func (r *rig) stat(suffix string) os.FileInfo {
	r.Helper()
	st, err := os.Stat(r.path + suffix)
	if err != nil {
		r.Fatal(err)
	}
	return st
}

// stamp gives a file the modification time of another.
func (r *rig) stamp(suffix string, like os.FileInfo) {
	r.Helper()
	if err := os.Chtimes(r.path+suffix, time.Time{}, like.ModTime()); err != nil {
		r.Fatal(err)
	}
}

// While nobody else writes, the end of the journal is read twice: the numbers of the first two lines come from the file, the
// others from memory, also after renewals and releases. A Store that writes one line, as a command's does, remembers nothing.
func TestAStoreReadsTheEndOfItsJournalTwice(t *testing.T) {
	r := newRig(t)
	r.write(r.at(".journal"), []byte(line(OpAcquired, 41)+line(OpReleased, 41)))
	p := r.player("alice")
	if p.journal.Load() != nil {
		t.Error("it knows a journal that it has not read")
	}
	pairOf(t, p)
	if p.journal.Load() != nil {
		t.Error("it remembers its first line")
	}
	for want := uint64(43); want < 47; want++ {
		out, err := acquire(p)
		equal(t, "the fence token", succeeded(t, out, err).Lease.Fence, want)
		remembers(t, p, want)
		out, err = renewOf(out.Lease.HolderID)(p)
		holder := succeeded(t, out, err).Lease.HolderID
		remembers(t, p, want)
		out, err = releaseOf(holder)(p)
		succeeded(t, out, err)
		remembers(t, p, want)
	}
}

// remembers fails unless the player has in memory that this is the highest number.
func remembers(t *testing.T, p *player, highest uint64) {
	t.Helper()
	kept := p.journal.Load()
	f, err := p.openJournal()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if end, ok := p.recall(f); !ok || end.highest != highest {
		t.Errorf("it knows %v, %+v, want %d", ok, end, highest)
	}
	p.journal.Store(kept)
}

// A line that did not come to lie where it should leaves nothing in memory; nor does a release by a Store that never read
// what the highest number is.
func TestAStoreThatIsNotSureOfItsJournalRemembersNothing(t *testing.T) {
	r := newRig(t)
	alice, bob := r.player("alice"), r.player("bob")
	pairOf(t, alice) // makes the journal
	pairOf(t, alice)
	remembers(t, alice, 2)
	m := mutation{Store: alice.Store, op: "acquire"}
	err := m.record(&Entry{Op: OpAcquired}, func(uint64) error {
		r.edit(func(j string) string { return j + line(OpAcquired, 77) })
		return nil
	})
	refused(t, m.journalRefused(err), CodeChanged)
	if alice.journal.Load() != nil {
		t.Error("after a line that moved it remembers something")
	}
	out, err := acquire(alice)
	equal(t, "the fence token", succeeded(t, out, err).Lease.Fence, 78)
	out, err = releaseOf(out.Lease.HolderID)(bob)
	succeeded(t, out, err)
	if bob.journal.Load() != nil {
		t.Error("after a release alone it remembers something")
	}
}
