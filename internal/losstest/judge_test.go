//go:build linux

package losstest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The statuses of leasectl run that matter here.
const (
	statusLost = 124
	statusTerm = 128 + int(unix.SIGTERM)
	statusKill = 128 + int(unix.SIGKILL)
)

// lost waits for the run's end and fails unless it ended as a loss must: by status 124, with one of the causes in the last
// line on standard error and in the events, nothing left running, and no stamp at or after the expiry that others saw.
func (s *scene) lost(causes ...string) {
	s.Helper()
	status := s.end()
	left := s.mark.Processes()
	if status != statusLost {
		s.Errorf("the status is %d, want %d; standard error:\n%s", status, statusLost, s.stderr())
	}
	if len(left) > 0 {
		s.Errorf("%d processes are left", len(left))
	}
	s.lostInEvents(causes)
	s.lostOnStderr(causes)
	s.overBefore("the lease's end", s.sight.expiry())
	if second := s.sight.second(); second != nil {
		s.overBefore("the second holder's acquire", second.AcquiredAt)
	}
}

// overBefore fails unless every stamp is before a moment.
func (s *scene) overBefore(what string, moment time.Time) {
	s.Helper()
	all := s.stamps()
	mono := monotonic() - time.Since(moment) // the moment on the clock that nobody sets
	for name, e := range all {
		if !e.last.Before(moment) || e.lastMono >= mono {
			s.Errorf("%s ran until %s, %s after %s", name, e.last.UTC().Format(time.StampMicro), e.last.Sub(moment), what)
		}
	}
	s.Logf("the last stamp is %s before %s", moment.Sub(last(all)).Round(time.Millisecond), what)
}

func (s *scene) lostInEvents(causes []string) {
	s.Helper()
	var told []noted
	names := []string{}
	for _, e := range s.eventsIn(s.events) {
		names = append(names, e.Event)
		if e.Event == "lost" {
			told = append(told, e)
		}
	}
	if len(told) != 1 || !slices.Contains(causes, told[0].Code) || told[0].Reason == "" {
		s.Errorf("the loss in the events is %+v, want one of %v", told, causes)
	}
	if want := []string{"acquired", "child-started"}; len(names) < 2 || !slices.Equal(names[:2], want) {
		s.Errorf("the events begin with %v", names)
	}
	if n := len(names); names[n-1] != "child-exited" || slices.Contains(names, "descendants-left") || slices.Contains(names, "released") {
		s.Errorf("the events are %v", names)
	}
}

func (s *scene) lostOnStderr(causes []string) {
	s.Helper()
	lines := strings.Split(strings.TrimSpace(s.stderr()), "\n")
	line := lines[len(lines)-1]
	if !strings.HasPrefix(line, "leasectl: the lease was lost: ") || !strings.Contains(line, "status 124 is leasectl's own") {
		s.Errorf("the last line on standard error is %q", line)
	}
	var object struct {
		Tool, Op, Code, Reason string
		OK                     bool
	}
	if len(lines) < 2 || json.Unmarshal([]byte(lines[len(lines)-2]), &object) != nil {
		s.Errorf("no object before the last line on standard error:\n%s", s.stderr())
		return
	}
	if object.OK || object.Op != "run" || !slices.Contains(causes, object.Code) || !strings.Contains(line, object.Reason) {
		s.Errorf("the object on standard error is %+v, want a code of %v", object, causes)
	}
}

// says fails unless the last line on standard error has a text in it: what was found.
func (s *scene) says(text string) {
	s.Helper()
	if lines := strings.Split(strings.TrimSpace(s.stderr()), "\n"); !strings.Contains(lines[len(lines)-1], text) {
		s.Errorf("the last line on standard error does not say %q: %q", text, lines[len(lines)-1])
	}
}

// unharmed waits for the run's end and fails unless it ended with the command's own status, and the lease was released.
func (s *scene) unharmed(status int) {
	s.Helper()
	if got := s.end(); got != status {
		s.Errorf("the status is %d, want the command's %d; standard error:\n%s", got, status, s.stderr())
	}
	if _, told := s.event("lost"); told {
		s.Errorf("a loss was told: %s", s.read(s.events))
	}
	if _, told := s.event("released"); !told {
		s.Errorf("the lease was not released: %s", s.read(s.events))
	}
	if left := s.mark.Processes(); len(left) > 0 {
		s.Errorf("%d processes are left", len(left))
	}
}

// contender is another holder, who waits for the lease.
type contender struct {
	s    *scene
	cmd  *exec.Cmd
	out  string
	done chan error
}

// contend starts one: it waits for the lease and takes it over as soon as it has expired.
func (s *scene) contend() *contender {
	s.Helper()
	c := &contender{s: s, out: filepath.Join(s.evidence, "contender"), done: make(chan error, 1)}
	c.cmd = exec.Command("leasectl", "acquire", "--lock", s.lock, "--take-over", "--duration", "1h", "--wait", patience.String(), "--format", "json")
	out, err := os.Create(c.out)
	s.must(err)
	c.cmd.Stdout, c.cmd.Stderr = out, os.Stderr
	s.must(c.cmd.Start())
	s.must(out.Close())
	go func() { c.done <- c.cmd.Wait() }()
	s.Cleanup(func() { _ = c.cmd.Process.Kill() })
	return c
}

// wins fails unless the contender has got the lease, with a higher number, and its bytes are in the file at the end.
func (c *contender) wins() {
	c.s.Helper()
	select {
	case err := <-c.done:
		if err != nil {
			c.s.Fatalf("the contender did not get the lease: %v: %s", err, c.s.read(c.out))
		}
	case <-time.After(patience):
		c.s.Fatal("the contender still waits")
	}
	var got struct{ Lease leaseSeen }
	if err := json.Unmarshal([]byte(c.s.read(c.out)), &got); err != nil {
		c.s.Fatal(err)
	}
	var now leaseSeen
	if err := json.Unmarshal([]byte(c.s.read(c.s.lock)), &now); err != nil || now.Token != got.Lease.Token {
		c.s.Errorf("the contender got %+v, the file has %+v, %v", got.Lease, now, err)
	}
	if first := c.s.sight.all()[0]; got.Lease.Fence != first.Fence+1 {
		c.s.Errorf("the contender's number is %d, after %d", got.Lease.Fence, first.Fence)
	}
	c.s.overBefore("the contender's acquire", got.Lease.AcquiredAt)
}

// lookedAt is what is at a path: kind, mode and bytes.
func lookedAt(path string) string {
	st, err := os.Lstat(path)
	if err != nil {
		return "nothing"
	}
	if !st.Mode().IsRegular() {
		return st.Mode().String()
	}
	b, err := os.ReadFile(path)
	return fmt.Sprintf("%s %q %v", st.Mode(), b, err)
}
