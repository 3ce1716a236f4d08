package registry

import (
	"errors"
	"fmt"

	"holdfast/pkg/claim"
	"holdfast/pkg/procid"
	"holdfast/pkg/regfile"
	"holdfast/pkg/strictjson"
)

// The codes a Refusal carries. Errors about files carry the codes of package regfile.
const (
	CodeUncertain    = "uncertain"     // what is there cannot be trusted
	CodeConflict     = "conflict"      // somebody else's, or not what it was
	CodeCapacity     = "capacity"      // the registry is full
	CodeQuarantine   = "quarantine"    // the root's last service did not end
	CodeUnavailable  = "unavailable"   // not now: a retained lock, or no service
	CodeClaimTimeout = "claim-timeout" // the lock stayed held
	CodeClaimLost    = "claim-lost"    // the lock was taken away meanwhile
	CodeRootInvalid  = "root-invalid"  // the root is no directory that can be registered
)

// Refusal is why a verb did not do, or cannot vouch for having done, what was asked: a code and the facts. It never holds a
// capability.
type Refusal struct {
	Code     string
	Path     string // of the file, root or lock that is to blame
	Root     string
	How      string // what is wrong, a clause
	Row      *Reservation
	Verdict  *procid.Verdict
	Lock     *claim.Inspection // the registry lock that stayed
	Retained bool              // this call has left the registry lock as a fence
	Err      error
}

// ErrorCode is the stable code.
func (r *Refusal) ErrorCode() string { return r.Code }

// Unwrap gives the error from below.
func (r *Refusal) Unwrap() error { return r.Err }

// Error says what happened to which file.
func (r *Refusal) Error() string {
	text := regfile.Printable(r.Path)
	switch {
	case r.How != "" && r.Err != nil && r.How != r.Err.Error():
		text += " " + r.How + ": " + r.Err.Error()
	case r.How != "":
		text += " " + r.How
	case r.Err != nil:
		text += ": " + r.Err.Error()
	}
	if r.Retained {
		text += "; a part of it was done, so the registry lock stays as a fence: nothing changes until it is repaired"
	}
	return text
}

func uncertain(path, format string, args ...any) *Refusal {
	return &Refusal{Code: CodeUncertain, Path: path, How: fmt.Sprintf(format, args...)}
}

// uncertainBy is a file that could not be read or makes no sense.
func uncertainBy(path string, err error) *Refusal {
	var fault *strictjson.Error
	if errors.As(err, &fault) {
		return &Refusal{Code: CodeUncertain, Path: path, How: err.Error(), Err: fault}
	}
	return &Refusal{Code: CodeUncertain, Path: path, How: "cannot be read", Err: err}
}

func conflict(path, format string, args ...any) *Refusal {
	return &Refusal{Code: CodeConflict, Path: path, How: fmt.Sprintf(format, args...)}
}

// isUncertain reports whether an error says that what is there cannot be trusted.
func isUncertain(err error) bool {
	var r *Refusal
	return errors.As(err, &r) && r.Code == CodeUncertain
}
