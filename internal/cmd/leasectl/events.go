package leasectl

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/pkg/atomicfile"
	"holdfast/pkg/lease"
	"holdfast/pkg/regfile"
	"holdfast/pkg/strictjson"
)

// event is one line of run's events file.
type event struct {
	Tool      string            `json:"tool"`
	Op        string            `json:"op"`
	Event     string            `json:"event"`
	At        string            `json:"at"`
	Path      string            `json:"path"`
	Lease     strictjson.Object `json:"lease,omitzero"`
	PID       int               `json:"pid,omitzero"`
	Status    *int              `json:"status,omitzero"`
	Signal    string            `json:"signal,omitzero"`
	Processes int               `json:"processes,omitzero"`
	LeftMs    *int64            `json:"leftMs,omitzero"` // until the lease ends
	JumpMs    int64             `json:"jumpMs,omitzero"` // how far the wall clock ran ahead of the boot clock, or fell behind
	GapMs     int64             `json:"gapMs,omitzero"`  // how long nothing ran
	Code      string            `json:"code,omitzero"`
	Reason    string            `json:"reason,omitzero"`
}

// eventLog appends events to a regular file; without one it does nothing. The file may be on the very disk that has stopped
// answering, so a goroutine of its own writes: whoever adds an event, above all who ends the command, waits for no disk.
type eventLog struct {
	lock    string
	warn    func(format string, args ...any)
	file    *regfile.File // nil: nowhere
	written chan struct{} // closed when the last line is

	mu      sync.Mutex
	more    sync.Cond // lines were added, or closed is true
	waiting []event
	closed  bool
	silent  bool // nothing is to be said any more
}

// openEvents opens or creates the file at path. Anything but a regular file is refused before a child is started.
func openEvents(path, lock string, warn func(string, ...any)) (*eventLog, error) {
	l := &eventLog{lock: lock, warn: warn, written: make(chan struct{})}
	l.more.L = &l.mu
	if path == "" {
		return l, nil
	}
	dir, err := regfile.OpenDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if err := atomicfile.Ensure(dir, filepath.Base(path), 0o666); err != nil {
		return nil, err
	}
	if l.file, err = dir.Open(filepath.Base(path), unix.O_WRONLY|unix.O_APPEND); err != nil {
		return nil, err
	}
	go l.write()
	return l, nil
}

// add appends one event, later; its time is now.
func (l *eventLog) add(e event) {
	if l.file == nil {
		return
	}
	e.Tool, e.Op, e.At, e.Path = "leasectl", "run", lease.FormatTime(time.Now()), l.lock
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, e)
	l.more.Signal()
}

// write appends each event in one write, in their order. A failure is said once; the command goes on.
func (l *eventLog) write() {
	defer close(l.written)
	defer l.file.Close()
	for e, ok := l.next(); ok; e, ok = l.next() {
		line, err := strictjson.Line(e)
		if err == nil {
			err = atomicfile.AppendLine(l.file, line)
		}
		if err != nil {
			l.say("the events file lacks lines from now on: %v", err)
		}
	}
}

// next waits for an event; there is none when all are written and the log is closed.
func (l *eventLog) next() (event, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.waiting) == 0 && !l.closed {
		l.more.Wait()
	}
	if len(l.waiting) == 0 {
		return event{}, false
	}
	e := l.waiting[0]
	l.waiting = l.waiting[1:]
	return e, true
}

// say warns, once.
func (l *eventLog) say(format string, args ...any) {
	l.mu.Lock()
	silent := l.silent
	l.silent = true
	l.mu.Unlock()
	if !silent {
		l.warn(format, args...)
	}
}

// lastLines is how long the end of a run waits for its last events to be written.
const lastLines = time.Second

// close ends the log when everything is written, or cannot be for too long.
func (l *eventLog) close() {
	if l.file == nil {
		return
	}
	l.mu.Lock()
	l.closed = true
	l.more.Signal()
	l.mu.Unlock()
	select {
	case <-l.written:
	case <-time.After(lastLines):
		l.say("the events file lacks its last lines: it does not take them")
	}
}

// keeper turns what the keeper tells into an event.
func (l *eventLog) keeper(k lease.KeeperEvent) {
	left := k.Left.Milliseconds()
	e := event{Event: k.Name, LeftMs: &left, JumpMs: k.Jump.Milliseconds(), GapMs: k.Gap.Milliseconds()}
	if k.Lease != nil {
		e.Lease = k.Lease.Members()
	}
	if k.Err != nil {
		e.Reason = k.Err.Error()
		var coded interface{ ErrorCode() string }
		if errors.As(k.Err, &coded) {
			e.Code = coded.ErrorCode()
		}
	}
	l.add(e)
}

// signalName is a signal's name with its number, for people.
func signalName(s unix.Signal) string {
	if s == 0 {
		return ""
	}
	return fmt.Sprintf("%s (%d)", unix.SignalName(s), int(s))
}
