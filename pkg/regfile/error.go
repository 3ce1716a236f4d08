package regfile

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// The codes an Error carries.
const (
	CodeAbsent           = "absent"            // nothing has this name
	CodeNotRegular       = "not-regular"       // Kind says what is there; it was not opened
	CodeTooLarge         = "too-large"         // larger than Limit bytes
	CodeUnstable         = "unstable"          // changed during each of three reads
	CodeBusy             = "busy"              // under another process's kernel lease (F_SETLEASE)
	CodeForeignOwner     = "foreign-owner"     // in a sticky world-writable directory and not ours
	CodeDirectoryInvalid = "directory-invalid" // the directory is missing, or is none
	CodeMountPoint       = "mount-point"       // is itself a mount point, so it cannot be replaced or removed
	CodeIO               = "io"                // the system refused; Err has the errno
)

// Error is what went wrong with one file: a stable code, the path as the caller gave it, and the facts.
type Error struct {
	Code  string
	Path  string
	Kind  Kind   // what is there, where that is known
	Limit int64  // bytes; CodeTooLarge only
	UID   uint32 // the file's owner; CodeForeignOwner only
	Stamp *Stamp // the file's metadata, where they were read
	Op    string // what was being done, a verb: "open", "write"; CodeIO only
	Err   error  // the errno, where there is one
}

// ErrorCode returns the stable code.
func (e *Error) ErrorCode() string { return e.Code }

// Unwrap returns the errno, so that errors.Is(err, fs.ErrNotExist) and errors.Is(err, unix.ENOSPC) work.
func (e *Error) Unwrap() error { return e.Err }

// Error says what happened to which file.
func (e *Error) Error() string {
	path := Printable(e.Path)
	switch e.Code {
	case CodeAbsent:
		return path + " does not exist"
	case CodeNotRegular:
		return fmt.Sprintf("%s is %s, not a regular file, so it was not opened", path, e.Kind.Noun())
	case CodeTooLarge:
		if e.Stamp != nil && e.Stamp.Size > e.Limit {
			return fmt.Sprintf("%s has %d bytes, more than the limit of %d, so it was not read", path, e.Stamp.Size, e.Limit)
		}
		return fmt.Sprintf("%s grew past the limit of %d bytes while it was read", path, e.Limit)
	case CodeUnstable:
		return path + " changed each time it was read"
	case CodeBusy:
		return path + " is under another process's kernel lease"
	case CodeForeignOwner:
		return fmt.Sprintf("%s belongs to uid %d and lies in a world-writable sticky directory, so it is not trusted", path, e.UID)
	case CodeDirectoryInvalid:
		if e.Kind != "" && e.Kind != Absent {
			return fmt.Sprintf("%s is %s, not a directory", path, e.Kind.Noun())
		}
		return fmt.Sprintf("%s is not a directory that can be opened (%s)", path, Errno(e.Err))
	case CodeMountPoint:
		return path + " is itself a mount point, so it cannot be replaced; mount its directory instead"
	}
	return fmt.Sprintf("%s %s: %s", e.Op, path, Errno(e.Err))
}

// IsAbsent reports whether err says that nothing has the name.
func IsAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// Errno renders an error with the name of its errno first, as "ENOSPC (no space left on device)".
func Errno(err error) string {
	var no unix.Errno
	if errors.As(err, &no) {
		if name := unix.ErrnoName(no); name != "" {
			return name + " (" + no.Error() + ")"
		}
	}
	if err == nil {
		return "unknown error"
	}
	return err.Error()
}

// IOError wraps the errno of a failed operation on path; EBUSY on a name is a mount point.
func IOError(op, path string, err error) *Error {
	return &Error{Code: CodeIO, Path: path, Op: op, Err: err}
}

// Fingerprint names the content of a file that is too large to be read; empty of any other error.
func (e *Error) Fingerprint() string {
	if e.Code != CodeTooLarge || e.Stamp == nil {
		return ""
	}
	return e.Stamp.Fingerprint()
}
