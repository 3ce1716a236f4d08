package lease

import (
	"bytes"

	"holdfast/pkg/regfile"
)

// known is what a Store knows of its journal after a line of its own, so that the next line need not read the end again.
//
// It holds only for the journal as that line left it: the same inode, size and modification time, and that very line, with
// its random token, at the end. Participants add to a journal only at its end and inside the claim, or put another inode
// in its place, so those bytes are the ones that the number was chosen from, and the line. It is taken, not looked at, and
// put back only by the next line that succeeds: after any error the end is read.
type known struct {
	stamp   regfile.Stamp
	line    []byte
	highest uint64
}

// recall gives the end of the journal from memory; false when it must be read.
func (s *Store) recall(f *regfile.File) (tail, bool) {
	k := s.journal.Swap(nil)
	if k == nil {
		return tail{}, false
	}
	now := f.Stamp()
	if !now.SameFile(k.stamp) || now.Size != k.stamp.Size || !now.Mtime.Equal(k.stamp.Mtime) {
		return tail{}, false
	}
	last := make([]byte, len(k.line))
	n, err := f.ReadAt(last, now.Size-int64(len(last)))
	if err != nil || !bytes.Equal(last[:n], k.line) {
		return tail{}, false
	}
	return tail{size: now.Size, highest: k.highest, known: true, readable: true}, true
}

// remember keeps what the journal is after line was added at end, if nothing else was since. highest is over all of it.
func (s *Store) remember(f *regfile.File, line []byte, end int64, highest uint64) {
	st, err := f.Stat()
	if err == nil && st.Size == end+int64(len(line)) {
		s.journal.Store(&known{stamp: st, line: line, highest: highest})
	}
}
