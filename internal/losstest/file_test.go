//go:build linux

package losstest

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// foreignLease is a lease that another program wrote by its own means.
func foreignLease() []byte {
	now := time.Now().UTC()
	const layout = "2006-01-02T15:04:05.000Z"
	return fmt.Appendf(nil, `{
  "holderId": "another",
  "hostname": "elsewhere",
  "acquiredAt": %q,
  "expiresAt": %q,
  "durationSeconds": 3600,
  "token": "another's"
}
`, now.Format(layout), now.Add(time.Hour).Format(layout))
}

// TestLockFileIsSpoilt: whatever becomes of the lease file, the command is ended within a tick and the grace, long before
// the lease would have been over, and what is in the file's place stays as it is.
func TestLockFileIsSpoilt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		spoil func(s *scene) error
		cause string
		says  string
	}{
		{"removed", func(s *scene) error { return os.Remove(s.lock) }, "absent", "does not exist"},
		{"replaced", func(s *scene) error {
			if err := os.WriteFile(s.lock+".new", foreignLease(), 0o644); err != nil {
				return err
			}
			return os.Rename(s.lock+".new", s.lock)
		}, "not-holder", "another"},
		{"rewritten", func(s *scene) error { return os.WriteFile(s.lock, foreignLease(), 0o644) }, "not-holder", "another"},
		{"corrupted", func(s *scene) error {
			return os.WriteFile(s.lock, []byte(strings.Replace(s.read(s.lock), "expiresAt", "expires", 1)), 0o644)
		}, "corrupt", "expiresAt"},
		{"cut", func(s *scene) error { return os.Truncate(s.lock, 50) }, "corrupt", ""},
		{"emptied", func(s *scene) error { return os.Truncate(s.lock, 0) }, "corrupt", ""},
		{"a named pipe", func(s *scene) error {
			if err := os.Remove(s.lock); err != nil {
				return err
			}
			return unix.Mkfifo(s.lock, 0o644)
		}, "not-regular", "named pipe"},
		{"its directory is moved away", func(s *scene) error { return os.Rename(s.dir, s.dir+".away") }, "directory-moved", "does not lead"},
		{"its directory is gone", func(s *scene) error { return os.RemoveAll(s.dir) }, "absent", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			s.duration, s.grace = 20*time.Second, 5*time.Second // a tick is a second
			s.run("stamp", "child", "polite")
			time.Sleep(300 * time.Millisecond)
			spoilt := time.Now()
			s.must(c.spoil(s))
			there := lookedAt(s.lock)
			s.await("loss", func() bool { _, told := s.event("lost"); return told })
			s.end()
			s.overBeforeLoosely("a tick after it", spoilt.Add(time.Second), 4*time.Second)
			s.sight.leases = s.sight.leases[:1] // what another program wrote is no second holder of the protocol
			s.lost(c.cause)
			s.says(c.says)
			if now := lookedAt(s.lock); now != there {
				t.Errorf("there was %s, now there is %s", there, now)
			}
			if e, _ := s.event("child-exited"); e.Status == nil || *e.Status != 0 {
				t.Errorf("the child ended with %v, though it had time to end well", e.Status)
			}
		})
	}
}

// overBeforeLoosely is overBefore for a moment that the kernel's scheduling may delay.
func (s *scene) overBeforeLoosely(what string, moment time.Time, tolerance time.Duration) {
	s.Helper()
	if at := last(s.stamps()); at.After(moment.Add(tolerance)) {
		s.Errorf("something ran until %s after %s", at.Sub(moment), what)
	}
}
