//go:build linux

package losstest

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// stampsEnv names the file that stamps go to.
const stampsEnv = "LOSS_STAMPS"

// stamp is the work that a lease protects: it writes the time to $LOSS_STAMPS all the time until it is killed. Arguments:
// the name that its stamps carry, and "deaf" for one that ignores every signal that can be ignored, or "polite" for one
// that ends well at SIGTERM.
func stamp() error {
	name, manner := os.Args[1], ""
	if len(os.Args) > 2 {
		manner = os.Args[2]
	}
	terminated := make(chan os.Signal, 1)
	switch manner {
	case "deaf":
		signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2)
	case "polite":
		signal.Notify(terminated, unix.SIGTERM)
	}
	fd, err := unix.Open(os.Getenv(stampsEnv), unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT|unix.O_CLOEXEC, 0o666)
	if err != nil {
		return err
	}
	for {
		if _, err := unix.Write(fd, fmt.Appendf(nil, "%s %d %d\n", name, time.Now().UnixNano(), monotonic())); err != nil {
			return err
		}
		select {
		case <-terminated:
			return nil
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// monotonic is CLOCK_MONOTONIC, which is the same for every process outside a time namespace.
func monotonic() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

// stamped is what was stamped by one name.
type stamped struct {
	count       int
	first, last time.Time
	lastMono    time.Duration
}

// stamps reads the file of stamps, by name.
func (s *scene) stamps() map[string]stamped {
	s.Helper()
	b, err := os.ReadFile(s.stampFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.Fatal(err)
	}
	return parseStamps(s.T, string(b))
}

func parseStamps(t *testing.T, text string) map[string]stamped {
	all := map[string]stamped{}
	for line := range strings.Lines(text) {
		var name string
		var wall, mono int64
		if _, err := fmt.Sscan(line, &name, &wall, &mono); err != nil {
			t.Fatalf("a stamp %q: %v", line, err)
		}
		at := time.Unix(0, wall)
		e := all[name]
		if e.count == 0 || at.Before(e.first) {
			e.first = at
		}
		if at.After(e.last) {
			e.last = at
		}
		e.lastMono = max(e.lastMono, time.Duration(mono))
		e.count++
		all[name] = e
	}
	return all
}

// last is the last stamp of all.
func last(all map[string]stamped) (at time.Time) {
	for _, e := range all {
		if e.last.After(at) {
			at = e.last
		}
	}
	return at
}
