package lease

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"holdfast/pkg/claim"
	"holdfast/pkg/regfile"
	"holdfast/pkg/strictjson"
)

// The codes a Refusal carries. Errors about files carry the codes of package regfile.
const (
	CodeHeld                = "held"
	CodeExpired             = "expired"
	CodeAbsent              = "absent"
	CodeNotHolder           = "not-holder"
	CodeFenceMismatch       = "fence-mismatch"
	CodeTooShort            = "too-short"
	CodeDurationOutOfRange  = "duration-out-of-range"
	CodeFenceExhausted      = "fence-exhausted"
	CodeChanged             = "changed"
	CodeCorrupt             = "corrupt"
	CodeJournalCorrupt      = "journal-corrupt"
	CodeDirectoryMoved      = "directory-moved"
	CodeClaimTimeout        = "claim-timeout"
	CodeClaimLost           = "claim-lost"
	CodeFingerprintMismatch = "fingerprint-mismatch"
	CodeNotBroken           = "not-broken"
)

// Refusal is why a verb did not do, or cannot vouch for having done, what was asked: a code and the facts.
type Refusal struct {
	Code  string
	Path  string // of the lock, or of the file that is to blame
	Lease *Lease // what the answer was decided on, where it was readable

	Holder       string            // who asked
	Fence        uint64            // which token was asked for
	MinRemaining time.Duration     // how much was asked for
	Waited       time.Duration     // CodeWaitTimeout: how long
	How          string            // CodeChanged: what differs, a clause
	Written      *Lease            // CodeChanged: the lease this call published all the same
	Fault        strictjson.Fault  // what is wrong with a corrupt file
	Fingerprint  string            // of a corrupt or mismatched file
	Claim        *claim.Inspection // CodeClaimTimeout: the claim that stayed
	Err          error             // what was found below, if anything

	now time.Time
}

// ErrorCode is the stable code.
func (r *Refusal) ErrorCode() string { return r.Code }

// Unwrap gives the error from below.
func (r *Refusal) Unwrap() error { return r.Err }

// Error says what happened to which file.
func (r *Refusal) Error() string {
	path := regfile.Printable(r.Path)
	switch r.Code {
	case CodeHeld:
		return fmt.Sprintf("%s is held by %s until %s (%s left)", path, r.Lease.Who(), FormatTime(r.Lease.ExpiresAt),
			span(r.Lease.ExpiresAt.Sub(r.now)))
	case CodeExpired:
		return fmt.Sprintf("%s: the lease of %s expired at %s, %s ago", path, r.Lease.Who(), FormatTime(r.Lease.ExpiresAt),
			span(r.now.Sub(r.Lease.ExpiresAt)))
	case CodeAbsent:
		return fmt.Sprintf("%s does not exist: nobody holds the lease", path)
	case CodeNotHolder:
		return fmt.Sprintf("%s is not %s's: it names %s", path, regfile.Printable(r.Holder), r.Lease.Who())
	case CodeFenceMismatch:
		return fmt.Sprintf("%s has fence token %d, not %d", path, r.Lease.Fence, r.Fence)
	case CodeTooShort:
		return fmt.Sprintf("%s expires in %s, sooner than the %s asked for", path, span(r.Lease.ExpiresAt.Sub(r.now)),
			span(r.MinRemaining))
	case CodeWaitTimeout:
		return fmt.Sprintf("waited %s in vain: %v", span(r.Waited), r.found())
	case CodeDurationOutOfRange:
		return fmt.Sprintf("%s: a lease of %s seconds that expires at %s cannot be renewed on its recorded term", path,
			plainNumber(r.Lease.Duration), FormatTime(r.Lease.ExpiresAt))
	}
	return r.aboutFiles(path)
}

func (r *Refusal) aboutFiles(path string) string {
	switch r.Code {
	case CodeChanged:
		text := fmt.Sprintf("%s changed meanwhile: %s", path, r.How)
		if r.Written != nil {
			text += "; this call had published a lease of " + r.Written.HolderID
		}
		return text
	case CodeCorrupt, CodeJournalCorrupt:
		return fmt.Sprintf("%s is corrupt (%s): it %v; inspect it manually, it is never overwritten", path, r.Fault, r.Err)
	case CodeDirectoryMoved:
		return fmt.Sprintf("%s does not lead to the directory of this lease any more, so nobody else finds it there", path)
	case CodeFenceExhausted:
		return fmt.Sprintf("%s: the fence token has reached 2^53-1 and cannot grow", path)
	case CodeFingerprintMismatch:
		return fmt.Sprintf("no broken file at %s has the fingerprint %s; nothing was moved", path, regfile.Printable(r.Fingerprint))
	case CodeNotBroken:
		return fmt.Sprintf("%s is readable, so it is not set aside", path)
	case CodeClaimTimeout:
		return fmt.Sprintf("%s; %v", r.situation(), r.Err)
	case CodeClaimLost:
		return fmt.Sprintf("the claim of %s was cleared by force meanwhile; %s", path, r.How)
	}
	return fmt.Sprintf("%s: %v", path, r.Err)
}

// found is the refusal that says what the lease is.
func (r *Refusal) found() *Refusal {
	is := &Refusal{Code: CodeHeld, Path: r.Path, Lease: r.Lease, now: r.now}
	switch {
	case r.Lease == nil:
		is.Code = CodeAbsent
	case r.Lease.Expired(r.now):
		is.Code = CodeExpired
	}
	return is
}

// situation is what the lease looked like when the claim could not be had.
func (r *Refusal) situation() string {
	switch {
	case r.How != "":
		return r.How
	case r.Lease == nil:
		return "no lease, no live holder"
	case r.Lease.Expired(r.now):
		return "expired lease from " + r.Lease.Who()
	}
	return "lock held by " + r.Lease.Who()
}

// Who names the holder for people.
func (l *Lease) Who() string {
	who := regfile.Printable(l.HolderID)
	if l.Label != "" {
		who += " (" + regfile.Printable(clip(l.Label, MaxLabel)) + ")"
	}
	if l.Hostname != "" {
		who += " on " + regfile.Printable(l.Hostname)
	}
	return who
}

// plainNumber is a number without an exponent, as long as people would read it that way.
func plainNumber(n float64) string {
	if n < 1e15 {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return strconv.FormatFloat(n, 'g', -1, 64)
}

// span renders a duration for people.
func span(d time.Duration) string {
	if d < 10*time.Second && d > -10*time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// corrupt builds the refusal of a file that was read and makes no sense.
func corrupt(code, path, fingerprint string, err error) *Refusal {
	r := &Refusal{Code: code, Path: path, Fingerprint: fingerprint, Err: err}
	var fault *strictjson.Error
	if errors.As(err, &fault) {
		r.Fault = fault.Fault
	}
	return r
}
