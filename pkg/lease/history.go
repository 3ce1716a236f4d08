package lease

import (
	"bytes"

	"holdfast/pkg/regfile"
)

// Record is a journal line as History reports it.
type Record struct {
	Entry       Entry
	Void        bool // its number does not exceed one before it
	Unconfirmed bool // the last line, and the lease file says something else
}

// History is the journal, oldest line first.
type History struct {
	Records    []Record
	Unreadable int // lines that could not be read: torn ones, or damage
}

// History reads the journal. Errors: *regfile.Error, or a *Refusal of code journal-corrupt when no line is readable.
func (s *Store) History() (History, error) {
	if s.dir == nil {
		return History{}, nil
	}
	snap, err := s.dir.ReadOwned(s.journalName(), journalLimit)
	if regfile.IsAbsent(err) {
		return History{}, nil
	}
	if err != nil {
		return History{}, err
	}
	h, fault := parseHistory(snap.Bytes)
	if fault != nil && len(h.Records) == 0 {
		return History{}, corrupt(CodeJournalCorrupt, s.dir.Join(s.journalName()), snap.Fingerprint(), fault)
	}
	if len(h.Records) > 0 {
		last := &h.Records[len(h.Records)-1]
		o, err := s.read()
		last.Unconfirmed = err != nil || !confirms(o, last.Entry)
	}
	return h, nil
}

// parseHistory reads all lines; fault is of the last one that could not be read.
func parseHistory(journal []byte) (h History, fault error) {
	var highest uint64
	for line := range bytes.Lines(journal) {
		e, err := parseEntry(line)
		if err == nil && line[len(line)-1] != '\n' {
			err = torn()
		}
		if err != nil {
			h.Unreadable++
			fault = err
			continue
		}
		numbered := e.Op == OpAcquired || e.Op == OpTakenOver
		h.Records = append(h.Records, Record{Entry: e, Void: numbered && e.Fence <= highest})
		// A compacted line carries the number of lines that follow it, so it says nothing about what came before them.
		if e.Op != OpCompacted {
			highest = max(highest, e.Fence)
		}
	}
	return h, fault
}

// confirms reports whether the lease file is what the line left behind.
func confirms(o Observed, e Entry) bool {
	switch e.Op {
	case OpReleased:
		return o.Lease == nil
	case OpCompacted:
		return true
	}
	return o.Lease != nil && clip(o.Lease.Token, MaxLabel) == e.Token
}
