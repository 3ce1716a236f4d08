package clikit

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
	{"schema", 0, "a JSON Schema of one verb's objects"},
	{"regular", 0, "a regular file"},
	{"directory", 0, "a directory"},
	{"symlink", 0, "a symbolic link; `resolvesTo` and `resolvesToKind` tell where it ends"},
	{"fifo", 0, "a named pipe"},
	{"socket", 0, "a socket"},
	{"char-device", 0, "a character device"},
	{"block-device", 0, "a block device"},
	{"unexaminable", 0, "the path's type could not be established; `reason` says why"},

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
	{"interrupted", 1, "a signal ended the wait; nothing was changed (the program ends by that signal, and a shell shows 128 + its number)"},

	{"renewal-overdue", 1, "`run` could not renew the lease in time and ended the command (status 124)"},
	{"command-not-found", 1, "`run` found no such program (status 127)"},
	{"command-not-executable", 1, "`run` could not execute the program (status 126)"},

	{"usage", 64, "the command line is wrong; nothing was read or written"},

	{"not-regular", 65, "the path holds something else than a regular file; it was not opened"},
	{"corrupt", 65, "the lease file makes no sense; `fault` says what is wrong"},
	{"journal-corrupt", 65, "the journal has no readable line"},
	{"too-large", 65, "the file is larger than its kind ever is"},
	{"unstable", 65, "the file changed each time it was read"},
	{"foreign-owner", 65, "the file belongs to another user and lies in a world-writable directory"},

	{"bug", 70, "a bug in this program"},

	{"io", 74, "the system refused; `reason` begins with what was being done and has the errno's name"},
	{"mount-point", 74, "the file is itself a mount point and cannot be replaced"},
	{"directory-invalid", 74, "the directory is missing, or is none"},
	{"output-undeliverable", 74, "standard output is closed or full; what `acquire` had taken was given back, and what else was done is said"},

	{"claim-timeout", 75, "the claim file stayed; nothing was changed"},
	{"claim-lost", 75, "the claim was cleared by force while this call was inside it"},
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
