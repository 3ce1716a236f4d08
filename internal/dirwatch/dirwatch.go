// Package dirwatch waits until names disappear from a directory, or a while has passed.
//
// It is a hint, never evidence: a wake-up says that looking again may be worth while. Where the kernel gives no events
// (another system, a network filesystem, no /proc) every wait lasts as long as the caller allows.
package dirwatch

import "time"

// The poll that serves under events, and the one that serves alone.
const (
	pollUnderEvents = 5 * time.Millisecond
	pollAlone       = time.Millisecond
)

// Poll is the interval at which a waiter should look again: events may be lost, and some filesystems have none.
func (w *Watcher) Poll() time.Duration {
	if w.events() {
		return pollUnderEvents
	}
	return pollAlone
}
