package fencectl

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"holdfast/internal/claimview"
	"holdfast/internal/clikit"
	"holdfast/pkg/claim"
	"holdfast/pkg/fence"
	"holdfast/pkg/procid"
	"holdfast/pkg/regfile"
)

// refusal is every answer of fencectl that is no success.
type refusal struct {
	clikit.Head
	Resource      string          `json:"resource,omitzero"`
	Claim         *fence.Claim    `json:"claim,omitzero"` // what it was decided on, where it was readable
	Verdict       string          `json:"verdict,omitzero"`
	VerdictReason string          `json:"verdictReason,omitzero"`
	HolderState   string          `json:"holderState,omitzero"` // of a claim that cannot be reserved
	Observation   string          `json:"observation,omitzero"` // in observe
	NativeLease   *bool           `json:"nativeLease,omitzero"`
	NativeLeases  []leaseView     `json:"nativeLeases,omitzero"`
	Written       *written        `json:"written,omitzero"` // what this call had written all the same
	Tx            *claimview.View `json:"tx,omitzero"`
	Hold          *holdView       `json:"hold,omitzero"`
	Temps         []string        `json:"temps,omitzero"`
	clikit.SyntaxFault
	Fingerprint string `json:"fingerprint,omitzero"`
	clikit.FileFacts
	clikit.Why

	in claim.Inspection // what Tx shows
}

// written is the claim that a refused call had written.
type written struct {
	Resource   string `json:"resource"`
	State      string `json:"state"`
	Generation string `json:"generation"`
	OwnerPID   int    `json:"ownerPid"`
}

// Text is the remedy.
func (r *refusal) Text() string { return r.Why.Text() }

// observed adds what was found beside the claim.
func (r *refusal) observed(s status) {
	r.Resource, r.Claim, r.Verdict, r.VerdictReason = s.Resource, s.Claim, s.Verdict, s.VerdictReason
	r.NativeLease, r.NativeLeases, r.Tx, r.Hold, r.Temps = &s.NativeLease, s.NativeLeases, s.Tx, s.Hold, s.Temps
}

// refusal describes an error, with the command that leads on from it.
func (s *session) refusal(err error) *refusal {
	r := &refusal{
		Head:        clikit.Refused(clikit.CodeOf(err)),
		Fingerprint: fence.Fingerprint(err),
		Why:         clikit.Why{Reason: err.Error(), Location: clikit.At(s.dir)},
	}
	if facts, at := clikit.FactsOf(err); at.Path != "" {
		r.FileFacts, r.Location = facts, at
	}
	var refused *fence.Refusal
	if errors.As(err, &refused) {
		s.decided(r, refused)
	}
	var uncleared *claim.ClearError
	if errors.As(err, &uncleared) {
		r.Location = clikit.At(uncleared.Inspection.Path)
		r.Tx, r.in = claimview.Of(&uncleared.Inspection), uncleared.Inspection
	}
	r.SyntaxFault = clikit.FaultOf(err)
	r.Remedy = s.remedy(r)
	return r
}

func (s *session) decided(r *refusal, e *fence.Refusal) {
	if e.Path != "" {
		r.Location = clikit.At(e.Path)
	}
	if e.Resource != "" && s.dir == "" {
		s.dir = e.Resource
	}
	r.Resource, r.Claim, r.HolderState = e.Resource, e.Claim, string(e.HolderState)
	if e.Verdict != nil {
		r.Verdict, r.VerdictReason = string(e.Verdict.Word), e.Verdict.Reason
	}
	r.NativeLeases = viewLeases(e.Native)
	if e.Hold != nil {
		r.Hold = viewHold(*e.Hold, nil)
	}
	if e.Tx != nil {
		r.Tx, r.in = claimview.Of(e.Tx), *e.Tx
	}
	if w := e.Written; w != nil {
		r.Written = &written{Resource: w.Resource, State: string(w.State), Generation: w.Generation, OwnerPID: w.Owner.PID}
	}
}

// remedy is the command that leads on, or why none is safe.
func (s *session) remedy(r *refusal) string {
	switch r.Code {
	case fence.CodeOwnerLive:
		return fmt.Sprintf("none is safe while the owner lives; who it is: ps -o pid,stat,etime,args -p %d", r.Claim.Owner.PID)
	case fence.CodeOwnerUncertain:
		if r.Hold != nil && r.Hold.State == string(fence.HoldBusy) {
			return "none is safe while it lives; what it is: " + openersCommand(r.Hold)
		}
		return s.breakCommand(r.Claim, "--owner-is-gone", "only when you know that the owner is gone: if it lives, two will write")
	case fence.CodeOwnerOtherHost:
		return s.breakCommand(r.Claim, "--owner-is-gone", "only when you know that the owner on that host is gone; 'fencectl show' there tells")
	case fence.CodeOwnerDead:
		return "fencectl admit " + s.flag() + " --owner-pid PID --ticket FILE"
	case fence.CodeResourceMismatch:
		return s.breakCommand(r.Claim, "--resource-mismatch", "only when this directory, not the one it names, is the one to go on with")
	case fence.CodeProfileRequired:
		return fmt.Sprintf("give --profile %s as well", profileOf(r.Claim))
	case fence.CodeLegacyLease, fence.CodeLeaseUnattributed, fence.CodeLeaseTooYoung, fence.CodeLeaseMismatch, fence.CodeLeaseAppeared,
		fence.CodeAdoptLeaseAppeared:
		return s.leaseCommand(r)
	case fence.CodeLeaseNotEmpty:
		return "ls -la -- " + clikit.Quote(r.NativeLeases[0].Path)
	case fence.CodeTxHeld, "claim-mismatch", "claim-changed", fence.CodeTxReleaseFailed:
		return "fencectl tx inspect " + s.flag()
	case fence.CodeArmBusy, fence.CodeArmReleaseFailed:
		return s.txCommands().Inspect
	case fence.CodeBindingMismatch, fence.CodeRecordUnbound, fence.CodeAdoptBindingChanged, fence.CodeProfileUnattributed:
		return "fencectl enroll --garden " + clikit.Quote(s.garden.ID) + " --meta-root " + clikit.Quote(s.garden.MetaRoot) +
			" --cwd CWD --ticket FILE # by the owner of the session, while it has it"
	case fence.CodeTicketExists:
		return fmt.Sprintf("rm -- %s # only when its owner has ended; its next mark would fail", clikit.Quote(s.ticket))
	case fence.CodeGenerationMismatch, fence.CodeTransitionInvalid, fence.CodeTxLost, fence.CodeNotBroken, fence.CodeFingerprintMismatch,
		fence.CodeLeaseAbsent, fence.CodeClaimMissing, fence.CodeReserveUnarmed, fence.CodeReserveNotClean, fence.CodeProfileOtherHost,
		fence.CodeProfileNMismatch, fence.CodeLayoutMismatch, fence.CodeAliasMoved, fence.CodeAdoptNotReserved,
		fence.CodeAdoptGenerationMismatch, fence.CodeAdoptReservationMismatch, fence.CodeAdoptProfileMismatch, fence.CodeWithdrawNotOwn:
		return "fencectl show " + s.flag()
	case fence.CodeClaimUnreadable, regfile.CodeTooLarge:
		if r.Fingerprint != "" && strings.HasSuffix(r.Path, fence.ClaimName) {
			return fmt.Sprintf("fencectl set-aside %s --fingerprint %s # only when no owner can be alive: whose it was is lost", s.flag(), r.Fingerprint)
		}
	case fence.CodeSchemaNewer:
		return "none is safe: a newer fencectl wrote this claim; use that one"
	}
	return s.fileRemedy(r)
}

func (s *session) fileRemedy(r *refusal) string {
	switch r.Code {
	case "held":
		return "none is safe while it is held; who holds it: " + claimview.HolderCommand(r.in)
	case "unproven":
		return s.txCommands().Force(r.in)
	case procid.CodeOwnerPIDImplausible:
		return "give the pid of the process that will own the session; in a shell script that is $$"
	case regfile.CodeNotRegular:
		return s.moveAside(r)
	case regfile.CodeForeignOwner:
		return "none is safe: keep sessions in a directory of your own"
	case regfile.CodeDirectoryInvalid:
		if r.Errno == "ENOENT" {
			return "none is safe: check the path; 'fencectl run --create' makes a new session's directory"
		}
		return clikit.ListModes(filepath.Dir(r.Path), r.Path)
	case regfile.CodeMountPoint:
		return "none is safe: mount the directory instead of the file"
	case regfile.CodeUnstable, regfile.CodeBusy:
		return "fencectl show " + s.flag()
	}
	switch r.Errno {
	case "ENOSPC", "EDQUOT":
		return fmt.Sprintf("df -h -- %[1]s; df -i -- %[1]s", clikit.Quote(clikit.Seen(filepath.Dir(r.Path))))
	case "EROFS":
		return "findmnt -T " + clikit.Quote(clikit.Seen(filepath.Dir(r.Path)))
	case "EACCES", "EPERM":
		return clikit.ListModes(filepath.Dir(r.Path), r.Path)
	}
	return ""
}

// moveAside clears a name for what belongs there, if it is one that only the fence has.
func (s *session) moveAside(r *refusal) string {
	switch {
	case s.ticket != "" && r.Path == s.ticket:
		return "none is safe: give --ticket the path of a regular file"
	case strings.HasPrefix(filepath.Base(r.Path), ownNames), s.garden.ID != "" && r.Path == s.garden.ArmLockPath():
		return clikit.MoveAside(r.Path)
	}
	return "none is safe: it is another program's; give the path of a regular file"
}

// ownNames begin the names of all files that the fence keeps in a session directory.
const ownNames = "entwurf-owner."

// breakCommand breaks exactly this claim.
func (s *session) breakCommand(c *fence.Claim, how, when string) string {
	if c == nil {
		return "fencectl show " + s.flag()
	}
	return fmt.Sprintf("fencectl break %s --generation %s %s --reason WHY # %s", s.flag(), c.Generation, how, when)
}

// leaseCommand clears exactly the native lease that is in the way.
func (s *session) leaseCommand(r *refusal) string {
	if len(r.NativeLeases) == 0 {
		return "fencectl show " + s.flag()
	}
	if r.NativeLeases[0].Kind != string(regfile.Directory) {
		return "ls -la -- " + clikit.Quote(r.NativeLeases[0].Path) + " # no program that this fence knows makes such a lease"
	}
	return fmt.Sprintf("fencectl lease clear %s --mtime %s # only when no program has it: one that does touches it every few seconds",
		s.flag(), r.NativeLeases[0].Mtime)
}

// openersCommand shows what has a hold file open.
func openersCommand(h *holdView) string {
	if len(h.Openers) == 0 {
		return "fuser -v FILE, from where its processes can be seen"
	}
	words := make([]string, len(h.Openers))
	for i, pid := range h.Openers {
		words[i] = fmt.Sprint(pid)
	}
	return "ps -o pid,stat,etime,args -p " + strings.Join(words, ",")
}
