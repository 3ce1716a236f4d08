// Package finding is what a diagnosis says: each protocol package diagnoses its own files in these words, and the doctor
// collects them.
package finding

import "errors"

// Severity is how bad a finding is.
type Severity string

// The severities.
const (
	Pass Severity = "pass"
	Warn Severity = "warn"
	Fail Severity = "fail"
)

// Finding is one thing that a diagnosis says of one path. Condition is the word that the owning program has for it.
type Finding struct {
	Severity  Severity
	Condition string
	Path      string
	Detail    string

	Subject     string // what a command about it names: a lease file, a session directory, a root
	Token       string // of a claim file
	Fingerprint string // of a broken file
	Generation  string // of an owner claim
	Mtime       string // of a native lease
	Home        string // a registry's state home
	OwnerDead   bool   // a root's service is proven gone
	Aside       string // a name to move away to what is at the path and no file
	Obstacle    string // why the owning program would refuse its usual remedy as things stand, a clause
}

// CodeOf is the stable code of an error that has one; "io" of any other.
func CodeOf(err error) string {
	var coded interface{ ErrorCode() string }
	if errors.As(err, &coded) {
		return coded.ErrorCode()
	}
	return "io"
}
