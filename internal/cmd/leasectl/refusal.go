package leasectl

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"holdfast/internal/claimview"
	"holdfast/internal/clikit"
	"holdfast/pkg/claim"
	"holdfast/pkg/lease"
	"holdfast/pkg/regfile"
	"holdfast/pkg/strictjson"
)

// refusal is every answer of leasectl that is no success.
type refusal struct {
	clikit.Head
	Name    string            `json:"name,omitzero"`    // in list
	Lease   strictjson.Object `json:"lease,omitzero"`   // what it was decided on, where it was readable
	Written strictjson.Object `json:"written,omitzero"` // what this call had published all the same
	Claim   *claimview.View   `json:"claim,omitzero"`
	Stage   *stageView        `json:"stage,omitzero"`
	clikit.SyntaxFault
	Fingerprint string `json:"fingerprint,omitzero"`
	clikit.FileFacts
	clikit.Why

	in claim.Inspection // what Claim shows, in a refusal to clear
}

// Text is the remedy.
func (r *refusal) Text() string { return r.Why.Text() }

// refusal describes an error, with the command that leads on from it.
func (s *session) refusal(err error) *refusal {
	r := &refusal{
		Head:        clikit.Refused(clikit.CodeOf(err)),
		Fingerprint: lease.Fingerprint(err),
		Why:         clikit.Why{Reason: err.Error(), Location: clikit.At(s.lock)},
	}
	if facts, at := clikit.FactsOf(err); at.Path != "" {
		r.FileFacts, r.Location = facts, at
	}
	var refused *lease.Refusal
	if errors.As(err, &refused) {
		r.decided(refused)
	}
	var uncleared *claim.ClearError
	if errors.As(err, &uncleared) {
		r.Location = clikit.At(uncleared.Inspection.Path)
		r.Claim, r.in = claimview.Of(&uncleared.Inspection), uncleared.Inspection
	}
	r.SyntaxFault = clikit.FaultOf(err)
	switch {
	case r.Code == lease.CodeDurationOutOfRange:
		r.Remedy = newTerm("--lock "+clikit.Quote(s.lock), refused.Lease)
	case uncleared == nil || uncleared.Inspection.State != claim.Absent:
		r.Remedy = s.remedy(r)
	}
	return r
}

func (r *refusal) decided(e *lease.Refusal) {
	if e.Path != "" {
		r.Location = clikit.At(e.Path)
	}
	if e.Lease != nil {
		r.Lease = e.Lease.Members()
	}
	if e.Written != nil {
		r.Written = e.Written.Members()
	}
	r.Claim = claimview.Of(e.Claim)
}

// remedy is the command that leads on, or why none is safe.
func (s *session) remedy(r *refusal) string {
	lock := "--lock " + clikit.Quote(s.lock)
	switch r.Code {
	case lease.CodeHeld:
		if r.Claim != nil {
			return "none is safe while it is held; who holds it: " + claimview.HolderCommand(r.in)
		}
		return "leasectl status " + lock
	case lease.CodeAbsent, lease.CodeExpired:
		return s.take(lock, r.Code == lease.CodeExpired)
	case lease.CodeNotHolder, lease.CodeFenceMismatch, lease.CodeTooShort, lease.CodeChanged, lease.CodeWaitTimeout, "require-failed":
		return "leasectl status " + lock
	case lease.CodeDirectoryMoved:
		return "leasectl status --lock " + clikit.Quote(filepath.Join(r.Path, filepath.Base(s.lock)))
	case lease.CodeCorrupt, lease.CodeJournalCorrupt, regfile.CodeTooLarge:
		if r.Fingerprint == "" {
			return "leasectl status " + lock
		}
		if !s.isLeases(r.Path) {
			return "none is safe: nothing tells that it ever was a lease; give --lock the path of a lease file"
		}
		command := fmt.Sprintf("leasectl set-aside %s --fingerprint %s", lock, r.Fingerprint)
		return command + journalCaution(r.Path)
	case lease.CodeClaimTimeout:
		return "leasectl claim inspect " + lock + " # do not just delete the claim: deleting a live one can make two holders"
	case "claim-mismatch", "claim-changed", lease.CodeClaimLost:
		return "leasectl claim inspect " + lock
	}
	return s.fileRemedy(r)
}

// take is the command that takes the lease: an acquire, or the same run once more.
func (s *session) take(lock string, takeOver bool) string {
	verb, rest := "acquire", []string{lock}
	if s.running != nil {
		verb, rest = s.running[0], nil
		for _, word := range s.running[1:] {
			rest = append(rest, clikit.Quote(word))
		}
		end := slices.Index(rest, "--")
		takeOver = takeOver && !slices.Contains(rest[:max(end, 0)], "--take-over")
	}
	if takeOver {
		verb += " --take-over"
	}
	return strings.Join(append([]string{"leasectl", verb}, rest...), " ")
}

func (s *session) fileRemedy(r *refusal) string {
	switch r.Code {
	case "unproven":
		return s.claimCommands().Force(r.in)
	case lease.CodeFingerprintMismatch, lease.CodeNotBroken:
		return "leasectl status --lock " + clikit.Quote(s.lock)
	case regfile.CodeNotRegular:
		return s.moveAside(r) + journalCaution(r.Path)
	case regfile.CodeForeignOwner:
		return "none is safe: keep the lease in a directory of your own"
	case regfile.CodeDirectoryInvalid:
		switch {
		case r.Kind != "":
			return s.moveAside(r)
		case r.Errno != "ENOENT":
			return clikit.ListModes(filepath.Dir(r.Path), r.Path)
		case !s.acquiring:
			return "none is safe: check the path; acquire is what makes a fleet's state directory"
		}
		return "mkdir -p -- " + clikit.Quote(r.Path)
	case regfile.CodeMountPoint:
		return "none is safe: mount the directory instead of the file"
	case regfile.CodeUnstable, regfile.CodeBusy:
		return "leasectl status --lock " + clikit.Quote(s.lock)
	}
	return s.systemRemedy(r)
}

// systemRemedy looks at what the system refused.
func (s *session) systemRemedy(r *refusal) string {
	dir := filepath.Dir(r.Path)
	switch r.Errno {
	case "ENOSPC", "EDQUOT":
		return fmt.Sprintf("df -h -- %[1]s; df -i -- %[1]s", clikit.Quote(clikit.Seen(dir)))
	case "EROFS":
		return "findmnt -T " + clikit.Quote(clikit.Seen(dir))
	case "EACCES", "EPERM":
		return clikit.ListModes(dir, r.Path)
	}
	return ""
}

// moveAside clears a name for what belongs there, if it is one that only leases have.
func (s *session) moveAside(r *refusal) string {
	switch {
	case s.events != "" && (r.Path == s.events || r.Path == filepath.Dir(s.events)):
		return "none is safe: give --events the path of a regular file"
	case s.isLeases(r.Path):
		return clikit.MoveAside(r.Path)
	case r.Code == regfile.CodeDirectoryInvalid:
		return "none is safe: --lock leads through what is no directory; give it the path of a lease file"
	}
	return "none is safe: --lock names " + regfile.Kind(r.Kind).Noun() + "; give it the path of a lease file"
}

// isLeases reports whether a path has its name because of a lease: it is made from a fleet's, is the name of a file beside a
// lease file, or is that of a lease file whose journal or state directory tells that it is one. A path that only the user has named
// may be anything, and need not have anything to do with leases.
func (s *session) isLeases(path string) bool {
	dir, base := filepath.Split(s.lock)
	beside := path == s.lock+".mutex" || path == s.lock+".stage" || path == s.lock+".journal"
	if s.inFleet || beside {
		return beside || path == s.lock || path == filepath.Dir(s.lock)
	}
	if path != s.lock {
		return false
	}
	if filepath.Base(absolute(dir)) == "state" && strings.HasSuffix(base, lockSuffix) {
		return true
	}
	journal, err := regfile.Lstat(s.lock + ".journal")
	return err == nil && journal.Kind == regfile.Regular
}

// journalCaution says what moving a journal away costs.
func journalCaution(path string) string {
	if !strings.HasSuffix(path, ".journal") {
		return ""
	}
	return " # without its journal the lease's fence tokens begin again, at 1 when no lease is there"
}

// newTerm is the command that renews a lease whose recorded term cannot be used.
func newTerm(lock string, l *lease.Lease) string {
	if l.ExpiresAt.Year() == 9999 {
		return fmt.Sprintf("leasectl release %s --holder %s # no later expiry can be written", lock, clikit.Quote(l.HolderID))
	}
	return fmt.Sprintf("leasectl renew %s --duration 15m --holder %s", lock, clikit.Quote(l.HolderID))
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
