package dirwatch

import (
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Watcher watches one directory.
type Watcher struct{ fd int }

// New watches the directory open as dirfd. It never fails; see the package comment.
func New(dirfd int) *Watcher {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return &Watcher{fd: -1}
	}
	const gone = unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_ONLYDIR
	if _, err := unix.InotifyAddWatch(fd, "/proc/self/fd/"+strconv.Itoa(dirfd), gone); err != nil {
		unix.Close(fd)
		return &Watcher{fd: -1}
	}
	return &Watcher{fd: fd}
}

func (w *Watcher) events() bool { return w.fd >= 0 }

// Wait returns after at most d, and earlier, with true, when a name has gone since the last call.
func (w *Watcher) Wait(d time.Duration) bool {
	if w.fd < 0 {
		time.Sleep(d)
		return false
	}
	timeout := unix.NsecToTimespec(max(d, 0).Nanoseconds())
	n, err := unix.Ppoll([]unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLIN}}, &timeout, nil)
	if err != nil || n == 0 {
		return false
	}
	w.drain()
	return true
}

func (w *Watcher) drain() {
	var buf [4096]byte
	for {
		if n, err := unix.Read(w.fd, buf[:]); err != nil || n < len(buf)/2 {
			return
		}
	}
}

// Close ends the watch. The kernel waits for a grace period of some 10 ms in the call, which a caller who has just
// entered a claim must not spend inside it, so nobody waits for the call.
func (w *Watcher) Close() {
	if w.fd >= 0 {
		go unix.Close(w.fd)
	}
}
