package lease

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"

	"holdfast/pkg/atomicfile"
	"holdfast/pkg/regfile"
	"holdfast/pkg/strictjson"
)

// Op is what a journal line records.
type Op string

// The operations.
const (
	OpAcquired  Op = "acquired"
	OpTakenOver Op = "taken-over"
	OpRenewed   Op = "renewed"
	OpReleased  Op = "released"
	OpRestored  Op = "restored"
	OpCompacted Op = "compacted"
)

// Entry is one journal line.
type Entry struct {
	Fence    uint64 `json:"fence"`
	Op       Op     `json:"op"`
	HolderID string `json:"holderId"`
	Token    string `json:"token"`
	At       string `json:"at"`
	Hostname string `json:"hostname"`
	Label    string `json:"label,omitzero"`
}

// anchors reports whether the line alone tells the highest number up to it. The others carry the number of the lease
// they are about, which is 0 for another implementation's and may be lower than one that was skipped.
func (e Entry) anchors() bool {
	return e.Op == OpAcquired || e.Op == OpTakenOver || e.Op == OpCompacted
}

// parseEntry reads a line. Members it does not know are ignored: the number must count whatever a later version adds.
func parseEntry(line []byte) (Entry, error) {
	var e struct {
		Entry
		Fence *float64 `json:"fence"` // hides Entry's, to tell absent from 0
	}
	if err := strictjson.DecodeOpen(line, &e); err != nil {
		return Entry{}, err
	}
	if e.Op == "" {
		return Entry{}, strictjson.ShapeError("lacks %q", "op")
	}
	if e.Fence == nil || !validFence(*e.Fence) {
		return Entry{}, strictjson.ShapeError("has a %q that is no whole number from 0 to 2^53-1", "fence")
	}
	e.Entry.Fence = uint64(*e.Fence)
	return e.Entry, nil
}

// The sizes of a journal, in bytes: how much of the end is read to choose a number, from where on it is compacted, and
// what is read at most.
const (
	tailWindow   = 4 << 10
	compactAbove = 1 << 20
	journalLimit = 8 << 20
)

// tail is what the end of a journal says.
type tail struct {
	size     int64
	highest  uint64 // over the lines read
	torn     bool   // the last line has no newline
	readable bool   // there was a readable line
	anchor   uint64 // the highest number so far, when it is that of a line which tells the highest by itself
	enough   bool   // the lines read make reading further back needless
	known    bool   // highest is that of the whole journal, not only of some lines
}

// readTail reads the end of the journal: the last window, and further back as long as no line there is enough. With
// anchored, enough is one that tells the highest number by itself, confirmed by an earlier one that is lower: a void one
// is not; else any readable one. A journal without a readable line is the *strictjson.Error of its last line.
func readTail(f *regfile.File, anchored bool) (tail, error) {
	size := f.Stamp().Size
	t := tail{size: size}
	if size == 0 {
		return t, nil
	}
	for window := int64(tailWindow); ; window *= 4 {
		window = min(window, size)
		if window > journalLimit {
			st := f.Stamp()
			return tail{}, &regfile.Error{Code: regfile.CodeTooLarge, Path: f.Path(), Limit: journalLimit, Stamp: &st}
		}
		buf := make([]byte, window)
		n, err := f.ReadAt(buf, size-window)
		if err != nil {
			return tail{}, err
		}
		if int64(n) != window {
			return tail{}, &regfile.Error{Code: regfile.CodeUnstable, Path: f.Path(), Kind: regfile.Regular}
		}
		whole := window == size
		fault := t.scan(buf, whole, anchored)
		if t.enough || whole && t.readable {
			return t, nil
		}
		if whole {
			return tail{}, fault
		}
	}
}

// scan takes the lines of buf into account, the last one first; the first is only part of one unless buf is the whole
// journal. fault is of the last line that could not be read.
func (t *tail) scan(buf []byte, whole, anchored bool) (fault error) {
	end := bytes.LastIndexByte(buf, '\n')
	t.torn = end < len(buf)-1
	t.highest, t.anchor = 0, 0
	if t.torn {
		fault = torn()
		// One that lacks nothing but its newline becomes a line when the next one closes it, so its number counts.
		if e, err := parseEntry(buf[end+1:]); err == nil {
			t.highest = max(t.highest, e.Fence)
		}
	}
	for end >= 0 {
		start := bytes.LastIndexByte(buf[:end], '\n')
		if start < 0 && !whole {
			break
		}
		if err := t.take(buf[start+1:end], anchored); err != nil && fault == nil {
			fault = err
		}
		if t.enough && !anchored {
			break
		}
		end = start
	}
	return fault
}

func torn() *strictjson.Error {
	return &strictjson.Error{Fault: strictjson.Truncated, Offset: -1, Detail: "is torn"}
}

// take counts one line.
func (t *tail) take(line []byte, anchored bool) error {
	if n, ok := leadingFence(line); ok && t.enough && n <= t.highest {
		return nil // readable or not, it cannot change anything
	}
	e, err := parseEntry(line)
	if err != nil {
		return err
	}
	t.readable = true
	if e.anchors() && e.Fence >= t.highest {
		t.anchor = e.Fence
	}
	t.highest = max(t.highest, e.Fence)
	confirmed := t.anchor == t.highest && 0 < e.Fence && e.Fence < t.anchor
	t.enough = t.enough || !anchored || confirmed
	return nil
}

// leadingFence is the number of a line that begins as this program writes it; such a line, if it can be read at all, has
// no other number.
func leadingFence(line []byte) (uint64, bool) {
	digits, ok := bytes.CutPrefix(line, []byte(`{"fence":`))
	if !ok {
		return 0, false
	}
	digits, _, ok = bytes.Cut(digits, []byte(","))
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(string(digits), 10, 64)
	return n, err == nil
}

// openJournal opens the journal for appending; nil when there is none.
func (s *Store) openJournal() (*regfile.File, error) {
	f, err := s.dir.OpenOwned(s.journalName(), unix.O_RDWR|unix.O_APPEND)
	if regfile.IsAbsent(err) {
		return nil, nil
	}
	return f, err
}

// number chooses the next fence token, writes it into e, and makes its line durable.
func (s *Store) number(e *Entry, replaced uint64) error {
	return s.record(e, func(highest uint64) error {
		highest = max(highest, replaced)
		if highest >= MaxFence {
			return &Refusal{Code: CodeFenceExhausted, Path: s.path}
		}
		e.Fence = highest + 1
		return nil
	})
}

// note appends a line that needs no number of its own, without syncing it.
func (s *Store) note(e *Entry) error { return s.record(e, nil) }

// record appends one line, after choose, if there is one, has seen the highest number so far. A journal that is absent is
// created whole.
func (s *Store) record(e *Entry, choose func(highest uint64) error) error {
	again := s.wrote.Swap(true) // a command's Store writes one line, and need not remember it
	f, err := s.openJournal()
	if err == nil && f != nil && f.Stamp().Size > s.iv.compactAbove {
		f.Close()
		if err = s.compact(); err == nil {
			f, err = s.openJournal()
		}
	}
	if err != nil {
		return err
	}
	numbered := choose != nil
	var end tail
	if f != nil {
		defer f.Close()
		if end, err = s.readEnd(f, numbered); err != nil {
			return s.journalFault(f, err)
		}
	}
	if numbered {
		if err := choose(end.highest); err != nil {
			return err
		}
	}
	line, err := strictjson.Line(e)
	if err != nil {
		return err
	}
	if f == nil {
		return s.createJournal(line)
	}
	if end.torn {
		line = append([]byte("\n"), line...)
	}
	if err := atomicfile.Append(f, line, end.size, numbered); err != nil {
		return err
	}
	if again && (numbered || end.known) {
		s.remember(f, line, end.size, max(end.highest, e.Fence))
	}
	return nil
}

// readEnd is the end of the journal, from memory where that is sure.
func (s *Store) readEnd(f *regfile.File, numbered bool) (tail, error) {
	if end, ok := s.recall(f); ok {
		return end, nil
	}
	return readTail(f, numbered)
}

func (s *Store) createJournal(line []byte) error {
	if err := atomicfile.Create(s.dir, s.stageName(), s.journalName(), line, fileMode); err != nil {
		return err
	}
	return s.dir.Sync()
}

// journalFault names a journal without a readable line; its fingerprint is of the whole file.
func (s *Store) journalFault(f *regfile.File, err error) error {
	var fault *strictjson.Error
	if !errors.As(err, &fault) {
		return err
	}
	snap, readErr := f.Snapshot(journalLimit)
	if readErr != nil {
		return readErr
	}
	if snap == nil {
		return &regfile.Error{Code: regfile.CodeUnstable, Path: f.Path(), Kind: regfile.Regular}
	}
	return corrupt(CodeJournalCorrupt, f.Path(), snap.Fingerprint(), fmt.Errorf("has no readable line (the last one %w)", fault))
}
