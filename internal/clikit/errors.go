package clikit

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"holdfast/pkg/regfile"
)

// UsageError is a command line that makes no sense; nothing was read or written.
type UsageError struct{ Reason string }

// ErrorCode is the stable code.
func (e *UsageError) ErrorCode() string { return "usage" }

func (e *UsageError) Error() string { return e.Reason }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// undeliverable says that standard output took nothing. It is not printed there.
type undeliverable struct {
	err   error
	still error // why what had been taken could not be given back
}

func (e *undeliverable) ErrorCode() string { return "output-undeliverable" }

func (e *undeliverable) Unwrap() error { return e.err }

func (e *undeliverable) Error() string {
	text := "standard output: " + regfile.Errno(e.err)
	if e.still != nil {
		text += "; and what was taken could not be given back: " + e.still.Error()
	}
	return text
}

// Undeliverable reports whether err says that an object could not be printed, so that what it was about must be undone.
func Undeliverable(err error) bool {
	var u *undeliverable
	return errors.As(err, &u)
}

// interrupted is a signal that ended a wait.
type interrupted struct{ signal os.Signal }

func (e *interrupted) ErrorCode() string { return "interrupted" }

func (e *interrupted) Error() string {
	return fmt.Sprintf("interrupted (%s); nothing was changed", e.signal)
}

// ExitStatus is what a shell shows for a process that the signal ended.
func (e *interrupted) ExitStatus() int {
	if s, ok := e.signal.(syscall.Signal); ok {
		return 128 + int(s)
	}
	return statusRefused
}

// InterruptOf is the signal that an error tells of; 0 when it is no interrupt.
func InterruptOf(err error) syscall.Signal {
	var e *interrupted
	if errors.As(err, &e) {
		s, _ := e.signal.(syscall.Signal)
		return s
	}
	return 0
}

// CodeOf is the stable code of an error; one without a code is a bug.
func CodeOf(err error) string {
	var coded interface{ ErrorCode() string }
	if errors.As(err, &coded) {
		return coded.ErrorCode()
	}
	return "bug"
}

// Interrupted is the refusal of a call whose waiting a signal ended.
func Interrupted(s os.Signal) error { return &interrupted{s} }

// Exiting gives an error an exit status of its own.
func Exiting(status int, err error) error { return &exiting{status, err} }

type exiting struct {
	status int
	err    error
}

func (e *exiting) Error() string { return e.err.Error() }

func (e *exiting) Unwrap() error { return e.err }

// ExitStatus is the status that the error was given.
func (e *exiting) ExitStatus() int { return e.status }

// StillHeld is an object that reached nobody about something that could not be given back either.
func StillHeld(undelivered, err error) error {
	return &undeliverable{err: undelivered, still: err}
}
