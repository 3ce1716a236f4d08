package pty

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// patience is how long something may take that is expected to come.
const patience = 30 * time.Second

func after() <-chan time.Time { return time.After(patience) }

// screen collects what programs write to a terminal.
type screen struct {
	mu      sync.Mutex
	written []byte
	seen    int           // how much of it Expect has gone past
	more    chan struct{} // closed and replaced when something is added
	closed  bool
}

func newScreen() *screen { return &screen{more: make(chan struct{})} }

// fill collects until the terminal hangs up: EIO on a master says that no slave is open any more.
func (s *screen) fill(r io.Reader) {
	buf := make([]byte, 1<<14)
	for {
		n, err := r.Read(buf)
		s.mu.Lock()
		s.written = append(s.written, buf[:n]...)
		s.closed = err != nil
		close(s.more)
		s.more = make(chan struct{})
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *screen) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.written)
}

// drained waits for the end of the terminal.
func (s *screen) drained() bool {
	deadline := after()
	for {
		s.mu.Lock()
		more, closed := s.more, s.closed
		s.mu.Unlock()
		if closed {
			return true
		}
		select {
		case <-more:
		case <-deadline:
			return false
		}
	}
}

func (s *screen) expect(pattern string) ([]string, error) {
	re := regexp.MustCompile(pattern)
	deadline := after()
	for {
		s.mu.Lock()
		if at := re.FindSubmatchIndex(s.written[s.seen:]); at != nil {
			groups := bytesOf(s.written[s.seen:], at)
			s.seen += at[1]
			s.mu.Unlock()
			return groups, nil
		}
		more, closed := s.more, s.closed
		s.mu.Unlock()
		if closed {
			return nil, fmt.Errorf("the terminal was closed before %q came", pattern)
		}
		select {
		case <-more:
		case <-deadline:
			return nil, fmt.Errorf("%q did not come", pattern)
		}
	}
}

func bytesOf(text []byte, at []int) (groups []string) {
	for i := 0; i < len(at); i += 2 {
		group := ""
		if at[i] >= 0 {
			group = string(text[at[i]:at[i+1]])
		}
		groups = append(groups, group)
	}
	return groups
}

// session lists the processes of a session.
func session(leader int) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // state, parent, group, session
		if len(fields) > 3 && string(fields[3]) == strconv.Itoa(leader) {
			pids = append(pids, pid)
		}
	}
	return pids
}
