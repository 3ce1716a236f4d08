package dirwatch

import (
	"encoding/binary"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Watcher watches one directory.
type Watcher struct {
	fd    int
	names []string // those that matter; none: all
}

// New watches the directory open as dirfd for the disappearance of the names, or of any when none is given. It never
// fails; see the package comment.
func New(dirfd int, names ...string) *Watcher {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return &Watcher{fd: -1}
	}
	const gone = unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_ONLYDIR
	if _, err := unix.InotifyAddWatch(fd, "/proc/self/fd/"+strconv.Itoa(dirfd), gone); err != nil {
		unix.Close(fd)
		return &Watcher{fd: -1}
	}
	return &Watcher{fd: fd, names: names}
}

func (w *Watcher) events() bool { return w.fd >= 0 }

// Wait returns after at most d, and earlier, with true, when a name has gone since the last call.
func (w *Watcher) Wait(d time.Duration) bool {
	if w.fd < 0 {
		time.Sleep(d)
		return false
	}
	for end := time.Now().Add(d); ; d = time.Until(end) {
		timeout := unix.NsecToTimespec(max(d, 0).Nanoseconds())
		n, err := unix.Ppoll([]unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLIN}}, &timeout, nil)
		switch {
		case err == unix.EINTR && d > 0:
		case err != nil || n == 0:
			return false
		case w.drain():
			return true
		case d <= 0:
			return false
		}
	}
}

// drain takes the events that are there, and reports whether one of them matters.
func (w *Watcher) drain() (matters bool) {
	var buf [4096]byte
	for {
		n, err := unix.Read(w.fd, buf[:])
		if err != nil || n <= 0 {
			return matters
		}
		matters = w.concerns(buf[:n]) || matters
		if n < len(buf)/2 {
			return matters
		}
	}
}

// concerns looks for the names in raw events: a header, whose last word is the length of the NUL-padded name after it.
// Events that were lost, which carry no name, may have been anybody's.
func (w *Watcher) concerns(events []byte) bool {
	for len(events) >= unix.SizeofInotifyEvent {
		size := int(binary.NativeEndian.Uint32(events[unix.SizeofInotifyEvent-4:]))
		name := unix.ByteSliceToString(events[unix.SizeofInotifyEvent : unix.SizeofInotifyEvent+size])
		if len(w.names) == 0 || name == "" || slices.Contains(w.names, name) {
			return true
		}
		events = events[unix.SizeofInotifyEvent+size:]
	}
	return false
}

// Close ends the watch. The kernel waits for a grace period of some 10 ms in the call, which a caller who has just
// entered a claim must not spend inside it, so nobody waits for the call.
func (w *Watcher) Close() {
	if w.fd >= 0 {
		go unix.Close(w.fd)
	}
}

// nap sleeps for d, which is short. The runtime's own sleep would round it up to a millisecond in a process with nothing
// else to do, which is longer than most claims are held.
func nap(d time.Duration) {
	for end := time.Now().Add(d); d > 0; d = time.Until(end) {
		left := unix.NsecToTimespec(d.Nanoseconds())
		if unix.Nanosleep(&left, nil) != unix.EINTR {
			return
		}
	}
}
