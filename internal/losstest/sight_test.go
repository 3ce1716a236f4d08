//go:build linux

package losstest

import (
	"encoding/json"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// sight looks at a lease file all the time, as any other holder could, and remembers each lease that was in it.
type sight struct {
	s    *scene
	path string
	stop chan struct{}
	done chan struct{}
	once sync.Once

	mu     sync.Mutex
	leases []leaseSeen
}

// leaseSeen is a lease as it was in the file.
type leaseSeen struct {
	HolderID   string
	AcquiredAt time.Time
	ExpiresAt  time.Time
	Token      string
	Fence      uint64

	seen time.Time // first
}

func watch(s *scene) *sight {
	w := &sight{s: s, path: s.lock, stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for {
			w.look()
			select {
			case <-w.stop:
				w.look()
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return w
}

func (w *sight) close() {
	w.once.Do(func() { close(w.stop) })
	<-w.done
}

// look never waits: a named pipe in the lease's place is opened without it.
func (w *sight) look() {
	fd, err := unix.Open(w.path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(fd), w.path)
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return
	}
	b := make([]byte, 4096)
	n, _ := f.Read(b)
	l := leaseSeen{seen: time.Now()}
	if json.Unmarshal(b[:n], &l) != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.leases); n == 0 || w.leases[n-1].Token != l.Token {
		w.leases = append(w.leases, l)
	}
}

func (w *sight) all() []leaseSeen {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]leaseSeen(nil), w.leases...)
}

// acquired is when the first lease was.
func (w *sight) acquired() time.Time {
	w.s.Helper()
	w.s.await("lease", func() bool { return len(w.all()) > 0 })
	return w.all()[0].AcquiredAt
}

// holder is the first holder: the run under test.
func (w *sight) holder() string { return w.all()[0].HolderID }

// expiry is the latest that the first holder ever had in the file: until then others had to leave the lease to it.
func (w *sight) expiry() (at time.Time) {
	for _, l := range w.all() {
		if l.HolderID == w.holder() && l.ExpiresAt.After(at) {
			at = l.ExpiresAt
		}
	}
	return at
}

// second is the first lease of another holder; nil when there was none.
func (w *sight) second() *leaseSeen {
	for _, l := range w.all() {
		if l.HolderID != w.holder() {
			return &l
		}
	}
	return nil
}
