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

// eventLog appends events to a regular file; without one it does nothing.
type eventLog struct {
	lock string
	warn func(format string, args ...any)

	mu     sync.Mutex
	file   *regfile.File // nil: nowhere
	failed bool
}

// openEvents opens or creates the file at path. Anything but a regular file is refused before a child is started.
func openEvents(path, lock string, warn func(string, ...any)) (*eventLog, error) {
	l := &eventLog{lock: lock, warn: warn}
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
	l.file, err = dir.Open(filepath.Base(path), unix.O_WRONLY|unix.O_APPEND)
	return l, err
}

// add appends one event in one write. A failure is said once; the command goes on.
func (l *eventLog) add(e event) {
	if l.file == nil {
		return
	}
	e.Tool, e.Op, e.At, e.Path = "leasectl", "run", lease.FormatTime(time.Now()), l.lock
	line, err := strictjson.Line(e)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		err = atomicfile.AppendLine(l.file, line)
	}
	if err != nil && !l.failed {
		l.failed = true
		l.warn("the events file lacks lines from now on: %v", err)
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

func (l *eventLog) close() {
	if l.file != nil {
		l.file.Close()
	}
}

// signalName is a signal's name with its number, for people.
func signalName(s unix.Signal) string {
	if s == 0 {
		return ""
	}
	return fmt.Sprintf("%s (%d)", unix.SignalName(s), int(s))
}
