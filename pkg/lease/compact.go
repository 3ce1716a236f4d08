package lease

import (
	"bytes"

	"holdfast/pkg/atomicfile"
	"holdfast/pkg/strictjson"
)

// What a compacted journal keeps: at most so many lines, of at most so many bytes in all.
const (
	keptLines = 100
	keptBytes = compactAbove / 2
)

// compact replaces a journal that has grown past its bound by one line that carries the highest number, and the last
// lines. It is durable on return, so a number can be chosen from the new file.
func (s *Store) compact() error {
	snap, err := s.dir.ReadOwned(s.journalName(), journalLimit)
	if err != nil {
		return err
	}
	content, err := compacted(snap.Bytes, s.opts.NewID(), FormatTime(s.opts.Now()))
	if err != nil {
		return corrupt(CodeJournalCorrupt, s.dir.Join(s.journalName()), snap.Fingerprint(), err)
	}
	if err := atomicfile.CheckReplaceable(s.dir, s.journalName()); err != nil {
		return err
	}
	if err := atomicfile.Replace(s.dir, s.stageName(), s.journalName(), content, snap.Stamp); err != nil {
		return err
	}
	return s.dir.Sync()
}

// compacted is the decision: the new content. It fails when no line can be read.
func compacted(journal []byte, token, at string) ([]byte, error) {
	var top Entry
	var lines [][]byte
	readable := false
	for line := range bytes.Lines(journal) {
		e, err := parseEntry(line)
		if err != nil {
			continue
		}
		if e.Fence >= top.Fence {
			top = e
		}
		if line[len(line)-1] != '\n' { // closed, as the next line would have done: its number counts
			line = append(bytes.Clone(line), '\n')
		} else {
			readable = true
		}
		lines = append(lines, line)
	}
	if !readable {
		return nil, strictjson.ShapeError("has no readable line")
	}
	head, err := strictjson.Line(Entry{
		Fence: top.Fence, Op: OpCompacted, HolderID: top.HolderID, Token: token, At: at, Hostname: top.Hostname,
	})
	if err != nil {
		return nil, err
	}
	first, size := len(lines), 0
	for first > 0 && len(lines)-first < keptLines && size+len(lines[first-1]) <= keptBytes {
		first--
		size += len(lines[first])
	}
	return append(head, bytes.Join(lines[first:], nil)...), nil
}
