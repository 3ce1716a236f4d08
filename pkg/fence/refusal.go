package fence

import (
	"errors"
	"fmt"
	"time"

	"holdfast/pkg/claim"
	"holdfast/pkg/procid"
	"holdfast/pkg/regfile"
)

// ErrSchemaNewer is a claim of a schema that this package does not know.
var ErrSchemaNewer = errors.New("is of a newer schema than this program knows")

// The codes a Refusal carries. Errors about files carry the codes of package regfile, and those about an owner's pid those
// of package procid.
const (
	CodeResourceMismatch    = "claim-resource-mismatch"
	CodeLegacyLease         = "legacy-lease-present"
	CodeLeaseUnattributed   = "lease-unattributed"
	CodeOwnerOtherHost      = "owner-other-host"
	CodeOwnerLive           = "owner-live"
	CodeOwnerUncertain      = "owner-uncertain"
	CodeOwnerDead           = "owner-dead"
	CodeProfileRequired     = "profile-required"
	CodeAdmissionInvalid    = "admission-invalid"
	CodeClaimMissing        = "claim-missing"
	CodeGenerationMismatch  = "generation-mismatch"
	CodeTransitionInvalid   = "transition-invalid"
	CodeTicketExists        = "ticket-exists"
	CodeCorrupt             = "corrupt"
	CodeClaimUnreadable     = "claim-unreadable"
	CodeSchemaNewer         = "schema-newer"
	CodeTxHeld              = "tx-held"
	CodeTxLost              = "tx-lost"
	CodeTxReleaseFailed     = "tx-release-failed"
	CodeLeaseAbsent         = "lease-absent"
	CodeLeaseMismatch       = "lease-mismatch"
	CodeLeaseTooYoung       = "lease-too-young"
	CodeHoldLost            = "hold-lost"
	CodeNativeLost          = "native-lease-lost"
	CodeLeaseNotEmpty       = "lease-not-empty"
	CodeFingerprintMismatch = "fingerprint-mismatch"

	CodeReservationInvalid       = "reservation-invalid"
	CodeMetaRootSplit            = "reserve-meta-root-split"
	CodeArmBusy                  = "record-arm-busy"
	CodeArmReleaseFailed         = "record-arm-release-failed"
	CodeBindingMismatch          = "binding-mismatch"
	CodeRecordUnbound            = "profile-record-unbound"
	CodeEnrollMismatch           = "enroll-mismatch"
	CodeReserveUnarmed           = "reserve-unarmed"
	CodeReserveNotClean          = "reserve-not-clean"
	CodeProfileOtherHost         = "profile-other-host"
	CodeProfileUnattributed      = "profile-unattributed"
	CodeProfileNMismatch         = "profile-n-mismatch"
	CodeLayoutMismatch           = "profile-layout-mismatch"
	CodeAliasMoved               = "profile-alias-moved"
	CodeLeaseAppeared            = "lease-appeared"
	CodeAdoptNotReserved         = "adopt-not-reserved"
	CodeAdoptGenerationMismatch  = "adopt-generation-mismatch"
	CodeAdoptBindingChanged      = "adopt-binding-changed"
	CodeAdoptReservationMismatch = "adopt-reservation-mismatch"
	CodeAdoptProfileMismatch     = "adopt-profile-mismatch"
	CodeAdoptLeaseAppeared       = "adopt-lease-appeared"
	CodeWithdrawNotOwn           = "withdraw-not-own"

	CodeNotBroken = "not-broken"
)

// Refusal is why a verb did not do, or cannot vouch for having done, what was asked: a code and the facts.
type Refusal struct {
	Code     string
	Path     string          // of the file or directory that is to blame
	Resource string          // the session directory, where it was resolved
	Claim    *Claim          // what it was decided on, where it was readable
	Verdict  *procid.Verdict // of the claim's owner, where it was judged

	HolderState State             // of a claim that cannot be reserved
	Generation  string            // that was asked for
	How         string            // what is wrong, a clause
	Native      []NativeLease     // the native leases that are in the way
	Hold        *Hold             // of the run that is not over
	Age         time.Duration     // CodeLeaseTooYoung: of the lease
	MinAge      time.Duration     // CodeLeaseTooYoung: that was asked for
	Fingerprint string            // of a file that was read and makes no sense
	Tx          *claim.Inspection // CodeTxHeld: the transaction file that stayed
	Written     *Claim            // what this call had written all the same
	Err         error             // what was found below, if anything
}

// refuse makes a refusal about a claim.
func refuse(code string, c *Claim, v *procid.Verdict) *Refusal {
	r := &Refusal{Code: code, Claim: c}
	if v != nil && v.Word != "" {
		r.Verdict = v
	}
	return r
}

// ErrorCode is the stable code.
func (r *Refusal) ErrorCode() string { return r.Code }

// Unwrap gives the error from below.
func (r *Refusal) Unwrap() error { return r.Err }

// Error says what happened to which directory.
func (r *Refusal) Error() string {
	text := r.text()
	if r.Written != nil {
		text += fmt.Sprintf("; this call had written %s at generation %s", r.Written.State, r.Written.Generation)
	}
	return text
}

func (r *Refusal) text() string {
	at := regfile.Printable(r.Path)
	switch r.Code {
	case CodeResourceMismatch:
		return fmt.Sprintf("%s names another directory, %s", at, regfile.Printable(r.Claim.Resource))
	case CodeOwnerLive:
		return fmt.Sprintf("%s is %s, which lives: %s", at, r.held(), r.Verdict.Reason)
	case CodeOwnerUncertain:
		if r.Claim == nil {
			return fmt.Sprintf("%s: %s", at, r.How)
		}
		return fmt.Sprintf("%s is %s, and it is not proven dead: %s", at, r.held(), r.Verdict.Reason)
	case CodeOwnerOtherHost:
		return fmt.Sprintf("%s is %s, which only that host can judge: %s", at, r.held(), r.Verdict.Reason)
	case CodeOwnerDead:
		return fmt.Sprintf("%s needs no breaking: its owner %s is dead (%s), and the next admission takes over", at, who(r.Claim), r.Verdict.Reason)
	case CodeProfileRequired:
		return fmt.Sprintf("%s is used by owners with a profile; without one this owner would lock them out", at)
	case CodeLeaseAbsent:
		return fmt.Sprintf("%s has no native lease", at)
	case CodeClaimMissing:
		return fmt.Sprintf("%s has no owner claim", at)
	case CodeGenerationMismatch:
		return fmt.Sprintf("%s is at generation %s (%s of %s), not at %s", at, r.Claim.Generation, r.Claim.State, who(r.Claim), regfile.Printable(r.Generation))
	case CodeLegacyLease, CodeLeaseUnattributed, CodeLeaseMismatch, CodeLeaseTooYoung, CodeLeaseNotEmpty:
		return r.aboutLease(at)
	}
	return r.aboutFiles(at)
}

func (r *Refusal) aboutLease(at string) string {
	lease := at
	if len(r.Native) > 0 {
		lease = regfile.Printable(r.Native[0].Path)
	}
	switch r.Code {
	case CodeLegacyLease:
		return fmt.Sprintf("a native lease is there, %s, and no claim of this fence explains it", lease)
	case CodeLeaseUnattributed:
		return fmt.Sprintf("a native lease is there, %s, and the dead owner %s never had one", lease, who(r.Claim))
	case CodeLeaseMismatch:
		return fmt.Sprintf("%s %s", lease, r.How)
	case CodeLeaseTooYoung:
		return fmt.Sprintf("%s was touched %s ago, less than %s", lease, r.Age.Round(time.Millisecond), r.MinAge)
	}
	return fmt.Sprintf("%s is no empty directory, so it is not removed", lease)
}

func (r *Refusal) aboutFiles(at string) string {
	switch r.Code {
	case CodeClaimUnreadable, CodeSchemaNewer:
		return fmt.Sprintf("%s cannot be trusted: it %v; it is never overwritten", at, r.Err)
	case CodeAdmissionInvalid, CodeReservationInvalid, CodeMetaRootSplit, CodeRecordUnbound, CodeBindingMismatch, CodeEnrollMismatch:
		return r.How
	case CodeHoldLost:
		return fmt.Sprintf("%s %s", at, r.How)
	case CodeArmBusy:
		return fmt.Sprintf("the garden is being worked on: %v", r.Err)
	case CodeArmReleaseFailed:
		return fmt.Sprintf("the record-arm lock could not be removed: %v", r.Err)
	case CodeTicketExists:
		return fmt.Sprintf("%s exists: a ticket is made new for each admission", at)
	case CodeCorrupt:
		return fmt.Sprintf("%s is no ticket: it %v", at, r.Err)
	case CodeTxHeld:
		return fmt.Sprintf("another transaction is under way: %v", r.Err)
	case CodeTxLost:
		return fmt.Sprintf("the transaction file of %s was cleared by force meanwhile", at)
	case CodeTxReleaseFailed:
		return fmt.Sprintf("the transaction file could not be removed: %v", r.Err)
	case CodeFingerprintMismatch:
		return fmt.Sprintf("no broken claim at %s has the fingerprint %s; nothing was moved", at, regfile.Printable(r.Fingerprint))
	case CodeNotBroken:
		return fmt.Sprintf("%s is readable, so it is not set aside", at)
	}
	if r.How != "" {
		return fmt.Sprintf("%s: %s", at, r.How)
	}
	return fmt.Sprintf("%s: %v", at, r.Err)
}

// held says whose the directory is.
func (r *Refusal) held() string {
	if r.Claim.State == Reserved {
		return "reserved for a child of " + who(r.Claim)
	}
	return "owned by " + who(r.Claim)
}

// who names a claim's owner for people.
func who(c *Claim) string {
	return fmt.Sprintf("pid %d on %s", c.Owner.PID, regfile.Printable(c.Owner.Hostname))
}
