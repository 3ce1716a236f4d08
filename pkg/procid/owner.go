package procid

import (
	"fmt"
	"math"
	"os"
)

// The codes of an OwnerError.
const (
	CodeOwnerPIDImplausible     = "owner-pid-implausible"
	CodeOwnerStartKeyUnreadable = "owner-start-key-unreadable"
)

// OwnerError says why a process cannot be recorded as an owner.
type OwnerError struct {
	Code   string
	PID    int
	Reason string // a clause that names the pid, without a full stop
	Err    error  // what the system said, where it did
}

func (e *OwnerError) Error() string { return e.Reason }

// Unwrap is what the system said, nil where nothing failed.
func (e *OwnerError) Unwrap() error { return e.Err }

// ErrorCode is the code of the refusal.
func (e *OwnerError) ErrorCode() string { return e.Code }

// Of returns the identity of a process as an owner. Its start key is the one that Self makes in that process where both
// share a pid namespace; else it names our namespace, in which pid is a number. Whether we may own anything ourselves is
// for the caller to say: our own pid is like any other here.
//
// The pid is refused as implausible, with an *OwnerError, when it is no process's, a thread's that does not lead its
// process, the first process's of the system, or a zombie's; the start key is unreadable where Self could make none, and
// where the process is hidden. A pid that is reused while this looks at it may be taken for its next process.
func Of(pid int) (Identity, error) {
	c := newView().candidate(pid)
	if refusal := decideOwner(pid, c); refusal != nil {
		return Identity{PID: pid}, refusal
	}
	hostname, err := os.Hostname()
	if err != nil {
		hostname = ""
	}
	return Identity{PID: pid, StartKey: c.Key, Hostname: hostname}, nil
}

// candidate is what can be seen of a process that is to be an owner.
type candidate struct {
	Absent     bool   // kill says ESRCH
	NoKeys     error  // why no start key can be made here at all
	First      bool   // the first process of the initial pid namespace
	Unreadable error  // why this process's start or leader could not be read
	Leader     int    // the pid of the process that the number belongs to
	Zombie     bool   // exited, the last thread of it
	Key        string // the start key, where nothing above speaks against it
}

// decideOwner says why a process is no owner, nil when it is one; it does no I/O.
func decideOwner(pid int, c candidate) *OwnerError {
	implausible := func(reason string) *OwnerError {
		return &OwnerError{Code: CodeOwnerPIDImplausible, PID: pid, Reason: reason}
	}
	unreadable := func(err error) *OwnerError {
		reason := fmt.Sprintf("the start of pid %d cannot be read: %v", pid, err)
		return &OwnerError{Code: CodeOwnerStartKeyUnreadable, PID: pid, Reason: reason, Err: err}
	}
	switch {
	case !isPID(pid):
		return implausible(fmt.Sprintf("%d is no process's pid", pid))
	case c.Absent:
		return implausible(fmt.Sprintf("no process has pid %d", pid))
	case c.First:
		return implausible(fmt.Sprintf("pid %d is the first process of the system, which owns nothing", pid))
	case c.NoKeys != nil:
		return unreadable(c.NoKeys)
	case c.Unreadable != nil:
		return unreadable(c.Unreadable)
	case c.Leader != pid:
		return implausible(fmt.Sprintf("%d is a thread of the process with pid %d, not a process", pid, c.Leader))
	case c.Zombie:
		return implausible(fmt.Sprintf("pid %d is a zombie: it has exited and was not waited for", pid))
	}
	return nil
}

// isPID tells whether a number can be a pid at all. Others mean groups of processes to kill, or are cut to 32 bits by it.
func isPID(pid int) bool { return pid >= 1 && pid <= math.MaxInt32 }
