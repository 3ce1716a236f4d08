package regctl

import (
	"errors"
	"fmt"

	"holdfast/internal/claimview"
	"holdfast/internal/clikit"
	"holdfast/pkg/regfile"
	"holdfast/pkg/registry"
)

// refusal is every answer of regctl that is no success. It never carries a capability or an owner's token.
type refusal struct {
	clikit.Head
	Root          string          `json:"root,omitzero"`
	Row           *rowView        `json:"row,omitzero"` // what is in the way
	Verdict       string          `json:"verdict,omitzero"`
	VerdictReason string          `json:"verdictReason,omitzero"`
	Lock          *claimview.View `json:"lock,omitzero"`
	Retained      bool            `json:"retained,omitzero"` // this call has left the registry lock as a fence
	clikit.SyntaxFault
	clikit.FileFacts
	clikit.Why
}

// Text is the remedy.
func (r *refusal) Text() string { return r.Why.Text() }

// refusal describes an error, with the command that leads on from it.
func (s *session) refusal(op string, err error) *refusal {
	r := &refusal{Head: clikit.Refused(clikit.CodeOf(err)), Why: clikit.Why{Reason: err.Error(), Location: clikit.At(s.root)}}
	if facts, at := clikit.FactsOf(err); at.Path != "" {
		r.FileFacts, r.Location = facts, at
	}
	var refused *registry.Refusal
	if errors.As(err, &refused) {
		s.decided(r, refused)
	}
	r.SyntaxFault = clikit.FaultOf(err)
	r.Remedy = s.remedy(r)
	if op == "repair" && r.Code == registry.CodeUncertain {
		r.Remedy = "none is safe: no operation leaves a registry like that; look at " + clikit.Quote(r.Path) + " yourself"
	}
	return r
}

func (s *session) decided(r *refusal, e *registry.Refusal) {
	if e.Path != "" {
		r.Location = clikit.At(e.Path)
	}
	r.Root, r.Row, r.Retained = e.Root, viewRow(e.Row), e.Retained
	if e.Verdict != nil {
		r.Verdict, r.VerdictReason = string(e.Verdict.Word), e.Verdict.Reason
	}
	r.Lock = claimview.Of(e.Lock)
}

// remedy is the command that leads on, or why none is safe.
func (s *session) remedy(r *refusal) string {
	switch r.Code {
	case registry.CodeConflict:
		if r.Row != nil && r.Verdict == "dead" {
			return "regctl recover snapshot" + s.homeFlag() + " --root " + clikit.Quote(r.Row.Root) + " # its service is gone without a release"
		}
		if r.Row != nil {
			return "regctl inspect" + s.homeFlag() + " --root " + clikit.Quote(r.Row.Root)
		}
		if s.root != "" {
			return "regctl inspect" + s.flags()
		}
	case registry.CodeQuarantine:
		if r.Lock != nil {
			return s.repairRemedy()
		}
		if r.Verdict == "dead" {
			return "regctl recover snapshot" + s.flags()
		}
		return "regctl inspect" + s.flags()
	case registry.CodeUncertain:
		if change := modeRemedy(r.Path); change != "" {
			return change
		}
		return "regctl repair" + s.homeFlag() + " # says what is wrong and what would be done; nothing is repaired by itself"
	case registry.CodeUnavailable:
		if r.Lock != nil {
			return s.repairRemedy()
		}
		return "regctl inspect" + s.flags()
	case registry.CodeClaimTimeout:
		return "fuser -v " + clikit.Quote(r.Path)
	case registry.CodeCapacity:
		return "regctl list" + s.homeFlag() + " | jq -r 'select(.verdict == \"dead\").root' # services whose owner is gone"
	case registry.CodeRootInvalid:
		return "ls -ld -- " + clikit.Quote(r.Path)
	case regfile.CodeMountPoint:
		return "none is safe: mount the directory instead of the file"
	case regfile.CodeNotRegular, regfile.CodeForeignOwner:
		return "none is safe: a registry is its owner's alone; look at " + clikit.Quote(r.Path) + " yourself"
	}
	switch r.Errno {
	case "ENOSPC", "EDQUOT":
		return fmt.Sprintf("df -h -- %[1]s; df -i -- %[1]s", clikit.Quote(r.Path))
	case "EROFS":
		return "findmnt -T " + clikit.Quote(r.Path)
	case "EACCES", "EPERM":
		return "ls -ld -- " + clikit.Quote(r.Path)
	}
	return ""
}

func (s *session) repairRemedy() string {
	return "regctl repair" + s.homeFlag() + " # says what an operation left that stopped in the middle, and what would be done"
}

func (s *session) homeFlag() string {
	if s.home == "" {
		return ""
	}
	return " --state-home " + clikit.Quote(s.home)
}

// modeRemedy is the command that closes to others what they must not see; empty when that is not what is wrong.
func modeRemedy(path string) string {
	st, err := regfile.Lstat(path)
	switch {
	case err != nil:
		return ""
	case st.Kind == regfile.Directory && st.Perm() != 0o700:
		return "chmod 700 -- " + clikit.Quote(path)
	case st.Kind == regfile.Regular && st.Perm() != 0o600:
		return "chmod 600 -- " + clikit.Quote(path)
	}
	return ""
}
