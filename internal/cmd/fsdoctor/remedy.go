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
	subject := clikit.Quote(r.Subject)
	cure := ""
	switch {
	case r.Condition == doctor.Unresponsive:
		return "none is safe: its server has to answer again; findmnt shows which filesystem it is"
	case r.Check == "lease":
		cure = leaseRemedy(r, subject)
	case r.Check == "claims":
		cure = claimRemedy(r, subject)
	case r.Check == "fences":
		cure = fenceRemedy(r, subject)
	case r.Check == "registry":
		cure = registryRemedy(r, subject)
	case r.Check == "reservations":
		cure = "none is safe: the owner of the session enrols again, with fencectl enroll"
	default:
		cure = fileRemedy(r, clikit.Quote(r.Path))
	}
	if r.Obstacle != "" {
		return "none is safe now: " + r.Obstacle + "; afterwards: " + cure
	}
	return cure
}

// fileRemedy is for what no protocol owns.
func fileRemedy(r doctor.Result, path string) string {
	switch r.Condition {
	case regfile.CodeNotRegular:
		if r.Home != "" {
			return registryRemedy(r, path)
		}
		return clikit.MoveTo(r.Path, r.Aside)
	case regfile.CodeDirectoryInvalid:
		if r.Check == "entry-types" {
			return clikit.MoveTo(r.Path, r.Aside)
		}
		return "none is safe: what should be there is not known; ls -ld -- " + path + " shows what is"
	case "readable-by-others":
		return "chmod go= -- " + path
	case "writable-by-others":
		return "chmod go-w -- " + path
	case "foreign-owner":
		return "none is safe: whether it may be trusted is its owner's and yours to say; ls -l -- " + path + " shows whose it is"
	case "leftover":
		return "rm -- " + path + " # when no program is at work there"
	case "set-aside-file", "copy":
		if r.Token == "lease" {
			return "none is safe: it is a lease of its own, and somebody may use it; leasectl status --lock " + path + " shows who"
		}
		return "none is needed: no program reads it"
	case "git-lock":
		if r.Token == "stale" {
			return "rm -- " + path + " # when no git is at work there"
		}
		return "none is safe: a git may be at work, or an editor that it waits for; fuser -v " + path + " and ps show it"
	case "no-space", "no-inodes":
		return fmt.Sprintf("none is safe: what may go is yours to say; df -h -- %[1]s; df -i -- %[1]s show what is left", path)
	case "read-only", "shared-filesystem":
		return "none is safe: state belongs on a disk of this machine that can be written to; findmnt -T " + path + " shows where it is"
	case "unreadable":
		switch {
		case strings.HasPrefix(r.Detail, "ENOENT"), strings.HasPrefix(r.Detail, "ENOTDIR"):
			return "none is safe: a directory belongs there; name another, or make it"
		case strings.HasPrefix(r.Detail, "ENOTCONN"):
			return "umount -l -- " + path + " # the server of that filesystem is gone"
		}
		return "none is safe: who may look at it is its owner's to say; ls -ld -- " + path + " shows the rights"
	case "clock-behind", "clock-set":
		return wrongClock
	case "tool-missing":
		return "none is safe: install git"
	}
	return "none is known"
}

// wrongClock is the remedy wherever a time cannot be.
const wrongClock = "none is safe: set the clocks right, and let times pass that are wrong; date and timedatectl show this machine's"

func leaseRemedy(r doctor.Result, subject string) string {
	switch r.Condition {
	case lease.CodeExpired:
		return "leasectl acquire --take-over --lock " + subject + " # when the next holder begins; an expired lease keeps nobody out for good"
	case lease.CodeCorrupt, lease.CodeJournalCorrupt, regfile.CodeTooLarge:
		if r.Fingerprint != "" {
			return "leasectl set-aside --lock " + subject + " --fingerprint " + r.Fingerprint
		}
	case regfile.CodeNotRegular:
		return clikit.MoveTo(r.Path, r.Aside)
	case "stranded-stage", "journal-damaged", "journal-unconfirmed":
		return "none is needed: the next change goes on from what is there"
	case "clock-anomaly":
		return wrongClock
	}
	return "none is safe: what is wrong is nothing that leasectl mends; leasectl status --lock " + subject + " says more"
}

func claimRemedy(r doctor.Result, subject string) string {
	if r.Condition == regfile.CodeNotRegular {
		return clikit.MoveTo(r.Path, r.Aside)
	}
	commands := claimview.LeaseCommands(r.Subject)
	if strings.HasSuffix(r.Path, fence.TxName) {
		commands = claimview.SessionCommands("--dir " + subject)
	}
	in := claim.Inspection{State: claim.State(r.Condition), Path: r.Path, Token: r.Token, Fingerprint: r.Fingerprint}
	if remedy := commands.Remedy(in); remedy != "" {
		return remedy
	}
	return "none is safe: it is no claim that could be cleared; " + commands.Inspect + " says more"
}

func fenceRemedy(r doctor.Result, subject string) string {
	switch r.Condition {
	case fence.CodeLegacyLease, fence.CodeLeaseUnattributed:
		return "fencectl lease clear --dir " + subject + " --mtime " + r.Mtime + " # only when no program has it"
	case fence.CodeOwnerUncertain, fence.CodeOwnerOtherHost:
		return "none is safe: whether its owner lives cannot be proven from here; fencectl explain --dir " + subject + " says why"
	case fence.CodeResourceMismatch:
		return "fencectl break --dir " + subject + " --generation " + r.Generation + " --resource-mismatch --reason WHY # when this directory is the one to go on with"
	case fence.CodeClaimUnreadable, regfile.CodeTooLarge:
		if r.Fingerprint != "" {
			return "fencectl set-aside --dir " + subject + " --fingerprint " + r.Fingerprint
		}
	case fence.CodeTxHeld:
		return "none is needed but that of its transaction file; fencectl tx inspect --dir " + subject + " shows it"
	case fence.CodeOwnerDead, "reservation-abandoned":
		return "none is needed: the next admission takes over"
	case regfile.CodeNotRegular:
		return clikit.MoveTo(r.Path, r.Aside)
	}
	return "none is safe: what is wrong is nothing that fencectl mends; fencectl show --dir " + subject + " says more"
}

func registryRemedy(r doctor.Result, subject string) string {
	home := " --state-home " + clikit.Quote(r.Home)
	switch {
	case r.Condition == regfile.CodeNotRegular:
		return "none is safe: what was there is gone, and nothing but a copy of it brings it back; ls -l -- " + clikit.Quote(r.Path) + " shows what is there now"
	case r.Condition == registry.CodeUnavailable, r.Condition == registry.CodeUncertain:
		return "regctl repair" + home + " # prints what it would do"
	case r.OwnerDead:
		return "regctl recover snapshot" + home + " --root " + subject + " # prints the command that frees it"
	}
	return "none is safe: its owner is not proven dead; regctl inspect" + home + " --root " + subject + " says more"
}
