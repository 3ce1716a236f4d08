// Package procid identifies processes and judges whether one that is on record still lives.
//
// An owner is {pid, start key, hostname}. The pid alone names nobody: it is reused. The start key pins it to one process
// of one boot, seen from one pid namespace:
//
//	linux:<start in clock ticks since boot>@<boot id>/<pid namespace inode>
//	darwin:<start, seconds.microseconds>@<kern.bootsessionuuid>
//	freebsd:<start since boot, seconds.microseconds>@<kern.boottime>
//
// The key is compared for equality only, and derives from nothing that changes under a running process: not the wall
// clock, not a locale, not the hostname. A boot id that cannot be trusted (over-mounted, as containers do) is "?", a
// weak key, which can prove a process alive but never dead. FreeBSD's time of the boot is the clock's less the uptime, so
// it moves when the clock is stepped: there it tells boots apart only where no process has the pid and the start.
//
// # Guarantees
//
//   - Dead is said only when proven; what could not be proven is Uncertain, and the reason says what was missing.
//   - No key is minted or compared where /proc shows another pid namespace than ours or the time namespace's offset is
//     not whole seconds.
//   - No signal is sent: kill(pid, 0) only asks.
//
// # Not guaranteed
//
//   - A process that got the pid of one on record within the hundredth of a second in which that one started is taken
//     for it: live, which is the side that waits.
//   - Another program's key names no namespace, so its owner is looked for in ours; each such verdict says so.
//   - What this says of macOS and FreeBSD has been compiled and its decisions tested, but it has not run there.
//   - A FreeBSD process in a jail does not see those outside it, and neither does one under a policy that hides other
//     users' processes; an absent pid proves nothing there, and the verdict is Uncertain. A pid is one number in all
//     jails, so a pid that was reused is proof.
//   - On other systems no keys are made: every verdict there is Uncertain, or OtherHost.
package procid

import "os"

// Identity is an owner on record.
type Identity struct {
	PID      int    `json:"pid"`
	StartKey string `json:"startKey"`
	Hostname string `json:"hostname"`
}

// Word is a verdict. Only Dead ever permits a takeover.
type Word string

// The verdicts.
const (
	Live      Word = "live"
	Dead      Word = "dead"
	Uncertain Word = "uncertain"
	OtherHost Word = "other-host"
)

// Verdict is a word and the reason for it, a clause without a full stop.
type Verdict struct {
	Word   Word   `json:"word"`
	Reason string `json:"reason"`
}

// Self returns this process's identity. Where no start key can be minted it is empty and the error says why; pid and
// hostname are valid all the same.
func Self() (Identity, error) {
	hostname, err := os.Hostname()
	if err != nil {
		hostname = ""
	}
	id := Identity{PID: os.Getpid(), Hostname: hostname}
	id.StartKey, err = newView().mint(id.PID)
	return id, err
}

// Judge says whether the process on record lives. local tells whether the file that records it is on a filesystem that
// a single kernel mounts (regfile's Dir.IsLocal): then another boot's owners are gone with that boot.
//
// Who judges many uses an Observer.
func Judge(rec Identity, local bool) Verdict { return NewObserver().Judge(rec, local) }
