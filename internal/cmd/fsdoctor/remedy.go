package fsdoctor

import (
	"fmt"
	"strings"

	"holdfast/internal/claimview"
	"holdfast/internal/clikit"
	"holdfast/pkg/claim"
	"holdfast/pkg/doctor"
	"holdfast/pkg/fence"
	"holdfast/pkg/lease"
	"holdfast/pkg/regfile"
	"holdfast/pkg/registry"
)

// remedy is the command that cures a finding, or why none is safe.
func remedy(r doctor.Result) string {
	if r.Condition == doctor.Unresponsive {
		return "none is safe: its server has to answer again; findmnt shows which filesystem it is"
	}
	subject := clikit.Quote(r.Subject)
	switch r.Check {
	case "lease":
		return leaseRemedy(r, subject)
	case "claims":
		return claimRemedy(r, subject)
	case "fences":
		return fenceRemedy(r, subject)
	case "registry":
		return registryRemedy(r, subject)
	case "reservations":
		return "none is safe: the owner of the session enrols again, with fencectl enroll"
	}
	switch r.Condition {
	case regfile.CodeNotRegular:
		return moveAside(r.Path)
	case regfile.CodeDirectoryInvalid:
		if r.Check == "entry-types" {
			return moveAside(r.Path)
		}
		return "ls -ld -- " + clikit.Quote(r.Path)
	case "readable-by-others":
		return "chmod go= -- " + clikit.Quote(r.Path)
	case "writable-by-others":
		return "chmod o-w -- " + clikit.Quote(r.Path)
	case "leftover":
		return "rm -- " + clikit.Quote(r.Path) + " # when no program is at work there"
	case "set-aside-file", "copy":
		if r.Token == "lease" {
			return "leasectl status --lock " + clikit.Quote(r.Path)
		}
		return "none is needed: no program reads it"
	case "git-lock":
		if r.Token == "stale" {
			return "rm -- " + clikit.Quote(r.Path) + " # when no git is at work there"
		}
		return "none is safe: fuser -v " + clikit.Quote(r.Path)
	case "no-space", "no-inodes":
		return fmt.Sprintf("df -h -- %[1]s; df -i -- %[1]s", clikit.Quote(r.Path))
	case "read-only", "shared-filesystem":
		return "findmnt -T " + clikit.Quote(r.Path)
	case "unreadable":
		return "ls -ld -- " + clikit.Quote(r.Path)
	case "clock-behind", "clock-set":
		return "date; timedatectl"
	case "tool-missing":
		return "none is safe: install git"
	}
	return "none is known"
}

func moveAside(path string) string {
	return "mv -n -- " + clikit.Quote(path) + " " + clikit.Quote(path+".aside")
}

func leaseRemedy(r doctor.Result, subject string) string {
	switch r.Condition {
	case lease.CodeExpired:
		return "leasectl acquire --take-over --lock " + subject + " # when the next holder begins; an expired lease keeps nobody out for good"
	case lease.CodeCorrupt, lease.CodeJournalCorrupt, regfile.CodeTooLarge:
		if r.Fingerprint != "" {
			return "leasectl set-aside --lock " + subject + " --fingerprint " + r.Fingerprint
		}
	case regfile.CodeNotRegular:
		return moveAside(r.Path)
	case "stranded-stage", "journal-damaged", "journal-unconfirmed":
		return "none is needed: the next change goes on from what is there"
	case "clock-anomaly":
		return "date; timedatectl"
	}
	return "leasectl status --lock " + subject
}

func claimRemedy(r doctor.Result, subject string) string {
	if r.Condition == regfile.CodeNotRegular {
		return moveAside(r.Path)
	}
	commands := claimview.LeaseCommands(r.Subject)
	if strings.HasSuffix(r.Path, fence.TxName) {
		commands = claimview.SessionCommands("--dir " + subject)
	}
	in := claim.Inspection{State: claim.State(r.Condition), Path: r.Path, Token: r.Token, Fingerprint: r.Fingerprint}
	if remedy := commands.Remedy(in); remedy != "" {
		return remedy
	}
	return commands.Inspect
}

func fenceRemedy(r doctor.Result, subject string) string {
	switch r.Condition {
	case fence.CodeLegacyLease, fence.CodeLeaseUnattributed:
		return "fencectl lease clear --dir " + subject + " --mtime " + r.Mtime + " # only when no program has it"
	case fence.CodeOwnerUncertain, fence.CodeOwnerOtherHost:
		return "fencectl explain --dir " + subject
	case fence.CodeResourceMismatch:
		return "fencectl break --dir " + subject + " --generation " + r.Generation + " --resource-mismatch --reason WHY # when this directory is the one to go on with"
	case fence.CodeClaimUnreadable, regfile.CodeTooLarge:
		if r.Fingerprint != "" {
			return "fencectl set-aside --dir " + subject + " --fingerprint " + r.Fingerprint
		}
	case fence.CodeOwnerDead, "reservation-abandoned":
		return "none is needed: the next admission takes over"
	case regfile.CodeNotRegular:
		return moveAside(r.Path)
	}
	return "fencectl show --dir " + subject
}

func registryRemedy(r doctor.Result, subject string) string {
	home := " --state-home " + clikit.Quote(r.Home)
	switch {
	case r.Condition == registry.CodeUnavailable, r.Condition == registry.CodeUncertain:
		return "regctl repair" + home + " # prints what it would do"
	case r.OwnerDead:
		return "regctl recover snapshot" + home + " --root " + subject + " # prints the command that frees it"
	}
	return "regctl inspect" + home + " --root " + subject
}
