package clikit

import "slices"

// Code is one stable word of the output contract.
type Code struct {
	Word    string
	Status  int
	Meaning string
}

// Codes lists every code that the programs print, in the order of docs/codes.md.
var Codes = []Code{
	{"acquired", 0, "the lease is yours; `takenOver` holds the expired one it replaced"},
	{"renewed", 0, "the lease has a later expiry"},
	{"released", 0, "the lease is gone; `lease` is what was removed"},
	{"holds", 0, "the holder holds the lease now"},
	{"free", 0, "there is no lease"},
	{"entry", 0, "a journal line"},
	{"cleared", 0, "the claim file was removed"},
	{"abandoned", 0, "the claim's creator is gone; it can be cleared by its token"},
	{"set-aside", 0, "the broken file was moved to `movedTo`"},
	{"admitted", 0, "the directory has a new owner (`explain`: an admission would succeed now)"},
	{"adopted", 0, "the reservation's child has the directory"},
	{"enrolled", 0, "the garden's record and location name the directory"},
	{"withdrawn", 0, "the reservation was taken back"},
	{"not-yet-adopted", 0, "the reservation stands, and no child has adopted it"},
	{"lost", 0, "the reservation is over, and its child does not have the directory"},
	{"marked", 0, "the owner's step was recorded"},
	{"broken", 0, "the claim was ended by the operator, or moved to `movedTo`"},
	{"reserved", 0, "the directory is kept for exactly one child of its owner"},
	{"fenced", 0, "the owner was admitted and has taken nothing yet"},
	{"leased", 0, "the owner has the native lease, or takes none"},
	{"storage-open", 0, "the owner has opened storage"},
	{"closed", 0, "the last owner ended cleanly"},
	{"close-failed", 0, "the last owner's end failed, or is not known"},
	{"initialized", 0, "the root is configured"},
	{"phase-set", 0, "the service's own word was recorded"},
	{"asserted", 0, "every file is as the receipt says, and the owner lives"},
	{"access", 0, "the way to a service, with its capability"},
	{"idle", 0, "a service is registered; that does not mean that it is ready"},
	{"stopping", 0, "the registered service is about to end, by its own word"},
	{"quarantined", 0, "the registered service must not be used, by its own word"},
	{"stopped", 0, "the root is configured, and no service is registered"},
	{"snapshot", 0, "a service that may have to be recovered, with the digest of its state"},
	{"recovered", 0, "a service whose owner is dead was released in its place"},
	{"plan", 0, "a step of what a repair would do, or its end with the digest"},
	{"repaired", 0, "a step of a repair that was carried out, or its end"},
	{"schema", 0, "a JSON Schema of one verb's objects"},
	{"regular", 0, "a regular file"},
	{"directory", 0, "a directory"},
	{"symlink", 0, "a symbolic link; `resolvesTo` and `resolvesToKind` tell where it ends"},
	{"fifo", 0, "a named pipe"},
	{"socket", 0, "a socket"},
	{"char-device", 0, "a character device"},
	{"block-device", 0, "a block device"},
	{"unexaminable", 0, "the path's type could not be established; `reason` says why"},
	{"summary", 0, "what a scan or a check has seen, at its end"},
	{"device", 0, "a device"},
	{"dangling", 0, "a symbolic link that leads nowhere"},
	{"symlink-loop", 0, "a symbolic link that leads to itself"},
	{"symlink-escapes-root", 0, "a symbolic link that leads out of the tree"},
	{"setuid", 0, "a set-user-ID or set-group-ID file"},
	{"world-writable", 0, "anybody may write to it"},
	{"unreadable", 0, "it cannot be looked into"},
	{"huge", 0, "a very large file"},
	{"sparse", 0, "a file with holes"},
	{"name-control-characters", 0, "a name with control characters"},
	{"name-not-utf8", 0, "a name that is not UTF-8"},
	{"case-collision", 0, "two names that differ only in case"},
	{"hard-linked", 0, "a file with several names"},
	{"unresponsive", 0, "a path whose filesystem does not answer (status 1 from `cat`)"},
	{"pass", 0, "a check that found nothing wrong"},
	{"check", 0, "a check that there is"},
	{"nothing-there", 0, "a check that found nothing to look at"},
	{"clock-anomaly", 0, "a lease with a time that no honest clock gives"},
	{"stranded-stage", 0, "the stage of a change that was cut off"},
	{"journal-damaged", 0, "a journal with lines that cannot be read"},
	{"journal-unconfirmed", 0, "a journal whose last line is not what the lease says"},
	{"reservation-abandoned", 0, "a reservation whose parent is dead"},
	{"root-missing", 0, "a registered root that is gone"},
	{"root-replaced", 0, "a registered root in whose place another directory is"},
	{"writable-by-others", 0, "state that others may write to"},
	{"readable-by-others", 0, "a secret that others may read"},
	{"shared-filesystem", 0, "a filesystem that other machines may mount"},
	{"read-only", 0, "a filesystem that cannot be written"},
	{"no-space", 0, "a filesystem that is full"},
	{"no-inodes", 0, "a filesystem without free inodes"},
	{"clock-behind", 0, "state from the future"},
	{"clock-set", 0, "state older than a process that it names: the clock was set forward since the boot"},
	{"leftover", 0, "the stage of a write that was killed"},
	{"set-aside-file", 0, "a broken file that was set aside"},
	{"copy", 0, "a copy of a protocol file"},
	{"git-lock", 0, "git's lock"},
	{"tool-missing", 0, "a program that is needed and missing"},
	{"register-unsupported", 0, "a shared register is declared, which is not known yet"},

	{"held", 1, "somebody holds the lease, or has the claim's kernel lock (status 0 from `status` and `claim inspect`)"},
	{"unproven", 1, "nothing proves that the claim's creator is gone; clearing it needs `--force` (status 0 from `claim inspect`)"},
	{"expired", 1, "the lease has expired; a takeover must be asked for (status 0 from `status`)"},
	{"absent", 1, "there is nothing of that name (status 0 from `claim inspect` and `classify`)"},
	{"not-holder", 1, "the lease names another holder"},
	{"changed", 1, "the lease changed while this call was under way; `written` is a lease that this call had published all the same"},
	{"fence-mismatch", 1, "the lease carries another fence token"},
	{"too-short", 1, "less of the lease is left than was asked for"},
	{"require-failed", 1, "the lease is not in the required state"},
	{"duration-out-of-range", 1, "the recorded duration cannot be renewed; give one"},
	{"fence-exhausted", 1, "the fence token has reached 2^53-1"},
	{"fingerprint-mismatch", 1, "no broken file has that fingerprint; nothing was moved"},
	{"not-broken", 1, "the file is readable, so it is not set aside"},
	{"claim-mismatch", 1, "the claim that is there is not the one that was named"},
	{"claim-changed", 1, "the claim was replaced while it was being cleared; nothing was removed"},
	{"owner-pid-implausible", 1, "the named owner's pid is no process's, a thread's, a zombie's, or that of the system's first process"},
	{"owner-start-key-unreadable", 1, "when the named owner started cannot be read here, so that it could not be told from another process later"},
	{"owner-live", 1, "the owner of the session directory lives (status 0 from `explain`, as for all refusals of an admission)"},
	{"owner-uncertain", 1, "the owner is not proven dead; `verdictReason` says what is missing"},
	{"owner-other-host", 1, "the owner is on another host, which alone can judge it"},
	{"owner-dead", 1, "the claim needs no breaking: its owner is dead, and the next admission takes over"},
	{"legacy-lease-present", 1, "a native lease is there that no claim of the fence explains"},
	{"lease-unattributed", 1, "a native lease is there, and the dead owner never had one"},
	{"lease-absent", 1, "there is no native lease"},
	{"lease-mismatch", 1, "the native lease is not the one that was named"},
	{"lease-too-young", 1, "the native lease was touched too short a while ago"},
	{"lease-not-empty", 1, "the native lease is no empty directory"},
	{"hold-lost", 1, "the hold file of a run was removed or replaced (status 124)"},
	{"native-lease-lost", 1, "the native lease that `run` held was taken away (status 124)"},
	{"claim-missing", 1, "the session directory has no owner claim"},
	{"claim-resource-mismatch", 1, "the claim names another directory: this one was copied or moved"},
	{"generation-mismatch", 1, "the claim is not the one that this owner wrote last, or that was named"},
	{"transition-invalid", 1, "the owner's state does not lead there"},
	{"ticket-exists", 1, "there is a file where the ticket was to be made"},
	{"tree-incomplete", 1, "a part of the tree could not be looked into; what was found is listed"},
	{"binding-mismatch", 1, "the garden's record and location are of different incarnations: an enrolment was cut off"},
	{"profile-record-unbound", 1, "the garden's record or location is missing, or cannot be used"},
	{"enroll-mismatch", 1, "the garden's record is of another session or cwd"},
	{"reserve-unarmed", 1, "nobody has ever owned the directory, so it cannot be reserved"},
	{"reserve-not-clean", 1, "the last owner closed without having had storage open, so there is no session to hand on"},
	{"profile-other-host", 1, "the owner that the reservation would stand on was on another host"},
	{"profile-unattributed", 1, "the owner that the reservation would stand on is not the one that enrolled"},
	{"profile-n-mismatch", 1, "the owner's session is not the record's"},
	{"profile-layout-mismatch", 1, "the directory is not where the profile keeps the sessions of that cwd"},
	{"profile-alias-moved", 1, "the path by which the owner selected the directory leads elsewhere by now"},
	{"lease-appeared", 1, "a native lease has appeared since the directory was reserved"},
	{"adopt-not-reserved", 1, "the directory is not reserved"},
	{"adopt-generation-mismatch", 1, "the directory is reserved at another generation"},
	{"adopt-binding-changed", 1, "the citizen was enrolled again since the directory was reserved"},
	{"adopt-reservation-mismatch", 1, "the directory is reserved for another garden, session, cwd or directory"},
	{"adopt-profile-mismatch", 1, "the directory is reserved with another profile, path or session than the child's"},
	{"adopt-lease-appeared", 1, "a native lease has appeared since the directory was reserved; nothing was adopted"},
	{"withdraw-not-own", 1, "there is no reservation of this parent at this generation"},
	{"conflict", 1, "the root, the endpoint or the file is somebody else's, or not what it was"},
	{"capacity", 1, "the registry is full"},
	{"quarantine", 1, "the root's last service did not end properly"},
	{"root-invalid", 1, "the root is no directory that can be registered"},
	{"endpoint-unavailable", 1, "this system has no such endpoint"},
	{"interrupted", 1, "a signal ended the wait; nothing was changed (the program ends by that signal, and a shell shows 128 + its number)"},

	{"directory-moved", 1, "the path leads to another directory than the lease's by now, or to none; `run` ended the command (status 124)"},
	{"renewal-overdue", 1, "`run` could not renew the lease in time and ended the command (status 124)"},
	{"command-not-found", 1, "`run` found no such program (status 127)"},
	{"command-not-executable", 1, "`run` could not execute the program (status 126)"},

	{"usage", 64, "the command line is wrong; nothing was read or written"},
	{"admission-invalid", 64, "the request can never be admitted; nothing was written"},
	{"reservation-invalid", 64, "what names the reservation or the citizen cannot be right"},
	{"reserve-meta-root-split", 64, "the four roots are no children of one meta root"},
	{"profile-required", 64, "the claim is used by owners with a profile; nothing was written"},

	{"not-regular", 65, "the path holds something else than a regular file; it was not opened"},
	{"corrupt", 65, "the lease file, or the ticket, makes no sense; `fault` says what is wrong"},
	{"journal-corrupt", 65, "the journal has no readable line"},
	{"uncertain", 65, "a registry or a root cannot be trusted; `reason` says what is wrong, and nothing is repaired by itself"},
	{"claim-unreadable", 65, "the owner claim makes no sense; `fault` says what is wrong"},
	{"schema-newer", 65, "the claim was written by a newer program"},
	{"too-large", 65, "the file is larger than its kind ever is"},
	{"unstable", 65, "the file changed each time it was read"},
	{"foreign-owner", 65, "the file belongs to another user and lies in a world-writable directory"},

	{"bug", 70, "a bug in this program"},

	{"io", 74, "the system refused; `reason` begins with what was being done and has the errno's name"},
	{"mount-point", 74, "the file is itself a mount point and cannot be replaced"},
	{"record-arm-release-failed", 74, "the record-arm lock could not be removed; `written` is what this call had written"},
	{"tx-release-failed", 74, "the transaction file could not be removed; `written` is what this call had written"},
	{"directory-invalid", 74, "the directory is missing, or is none"},
	{"output-undeliverable", 74, "standard output is closed or full; what `acquire` had taken was given back, and what else was done is said"},

	{"claim-timeout", 75, "the claim file stayed; nothing was changed"},
	{"claim-lost", 75, "the claim was cleared by force while this call was inside it"},
	{"record-arm-busy", 75, "somebody else works on the garden; nothing was read or written"},
	{"tx-held", 75, "the transaction file stayed; nothing was changed"},
	{"tx-lost", 75, "the transaction file was cleared by force while this call was inside it"},
	{"unavailable", 75, "a retained lock keeps the registry from changing, or there is no service to talk to"},
	{"wait-timeout", 75, "waiting was in vain"},
	{"busy", 75, "the file is under another process's kernel lease"},
}

// The exit statuses that are not a code's own.
const (
	statusOK      = 0
	statusRefused = 1
	statusUsage   = 64
	statusBug     = 70
	statusOutput  = 74
)

// StatusOf maps a refusal's code to the exit status; a word that is not listed is a plain refusal.
func StatusOf(code string) int {
	for _, c := range Codes {
		if c.Word == code && c.Status != statusOK {
			return c.Status
		}
	}
	return statusRefused
}

// IsCode reports whether there is a code of that name.
func IsCode(word string) bool {
	return slices.ContainsFunc(Codes, func(c Code) bool { return c.Word == word })
}

const exitTable = `EXIT STATUS:
   0   done, or the predicate holds
   1   refused: somebody else's turn, or the predicate is false
   64  usage: nothing was read or written
   65  what is there cannot be trusted
   69  a shared register cannot be reached
   70  a bug in this program
   74  the system refused; the reason has the errno
   75  try again
`

// commandExitTable is that of a verb which runs a command.
const commandExitTable = `EXIT STATUS:
   N    the command's own, and 128 + N when a signal N ended it
%s   125  refused or failed before the command started; -E N sets it for when somebody else is in the way
   126  the command cannot be executed
   127  there is no such program
`
