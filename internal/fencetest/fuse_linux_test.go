package fencetest

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit/fusekit"
)

// sharedScene is a scene whose directory is on a filesystem that other machines may share, as far as anybody can know.
func sharedScene(t *testing.T, opts fusekit.Options) *scene {
	t.Helper()
	needWorlds(t)
	s := newScene(t)
	s.dir = filepath.Join(fusekit.Mount(t, opts).Dir, "s1")
	s.must(os.Mkdir(s.dir, 0o755))
	return s
}

// TestSharedFilesystem: the process itself is judged as elsewhere. Another boot and a free hold prove nothing there, for
// another machine may have them.
func TestSharedFilesystem(t *testing.T) {
	for name, test := range map[string]func(s *scene, w world, sibling side){
		"the usual place": func(s *scene, w world, sibling side) {
			owner := s.owner(nil)
			s.refused(nil, ownerLive)
			s.refused(sibling, ownerUncertain)
			owner.End(s.T)
			s.refused(sibling, ownerUncertain)
			s.admitted(nil)
		},
		"a pid namespace": func(s *scene, w world, sibling side) {
			owner := s.owner(w.inside())
			s.refused(nil, ownerLive)
			s.refused(sibling, ownerUncertain)
			owner.End(s.T)
			s.refused(sibling, ownerUncertain)
			s.admitted(w.inside())
		},
		"another boot": func(s *scene, w world, sibling side) {
			s.owner(nil)
			s.plant("@"+bootOf(s.claim()), "@6f1d8e4a-4a8b-4bd1-9a57-0d0d5c0c7d3e")
			s.verdict(nil, uncertain)
			s.refused(nil, ownerUncertain)
			s.verdict(otherName, otherHost)
			s.refused(otherName, "owner-other-host")
			words := []string{"break", "--dir", s.dir, "--generation", s.claim().Generation, "--reason", "a test"}
			if a := s.ask(otherName, words...); a.Code != "owner-other-host" {
				s.Errorf("a break without a word for it: %s: %s", a.Code, a.Reason)
			}
			if a := s.ask(otherName, append(words, "--owner-is-gone")...); a.Code != "broken" {
				s.Errorf("the break: %s: %s", a.Code, a.Reason)
			}
			s.admitted(nil)
		},
		"the hold of a dead run": func(s *scene, w world, sibling side) {
			s.orphan(w.inside(), func(pid int) { w.kill(pid, unix.SIGKILL) }, orphaned["forked twice"])
			a := s.refused(w.inside(), ownerUncertain)
			if a.Hold == nil || len(a.Hold.Openers) == 0 || !strings.Contains(a.Reason, "(open in pid ") {
				s.Errorf("the refusal does not name what has the hold open: %+v: %s", a.Hold, a.Reason)
			}
			s.refused(sibling, ownerUncertain)
			s.touch("end")
			s.eventually(nil, dead)
			if a := s.refused(sibling, ownerUncertain); a.Hold == nil || a.Hold.State != "free" {
				s.Errorf("the hold is %+v", a.Hold)
			}
			s.admitted(w.inside())
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := sharedScene(t, fusekit.Options{})
			test(s, s.world(""), s.world("elsewhere").inside())
		})
	}
}

// TestFilesystemWithoutLocks: a run needs the hold, so it is refused, and leaves nothing of an admission; an owner without
// one needs no lock.
func TestFilesystemWithoutLocks(t *testing.T) {
	s := sharedScene(t, fusekit.Options{Lock: syscall.ENOTSUP})
	w := s.run(nil, nil, "touch", s.file("ran"))
	if status := w.end(); status != statusRefused || exists(s.file("ran")) {
		t.Errorf("status %d: %s", status, w.stderr())
	}
	if a := w.refusal(); a.Code != "io" || !strings.Contains(a.Reason, "lock") {
		t.Errorf("%s: %s", a.Code, a.Reason)
	}
	if c := s.claim(); c != nil {
		t.Errorf("there is a claim: %+v", c)
	}
	owner := s.owner(nil)
	s.refused(nil, ownerLive)
	owner.End(t)
	s.admitted(nil)
}
