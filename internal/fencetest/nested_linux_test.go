package fencetest

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNestedRunsKeepBothDirectories: a run in a run. Both wrappers are killed; what their command has left behind keeps
// both directories.
func TestNestedRunsKeepBothDirectories(t *testing.T) {
	s := newScene(t)
	outer, inner := s.dir, filepath.Join(filepath.Dir(s.dir), "s2")
	w := s.run(nil, nil, "fencectl", "run", "--dir", inner, "--create", "--", "sh", "-c",
		orphaned["a session of its own"]+` until test -e "$OUT/started"; do sleep 0.02; done; exec sleep 1000`)
	s.await("the command", func() bool { return s.running("sleep", "1000") == 1 && s.isOpen() })
	s.dir = inner
	s.await("the inner mark", s.isOpen)
	w.kill()
	s.await("the end of the command", func() bool { return s.running("sleep", "1000") == 0 })
	for _, dir := range []string{outer, inner} {
		s.dir = dir
		s.refused(nil, ownerUncertain)
	}
	s.touch("end")
	for _, dir := range []string{outer, inner} {
		s.dir = dir
		s.eventually(nil, dead)
		s.admitted(nil)
	}
}

// TestInnerWrapperWithASocket: an inner wrapper that gives its command a descriptor 3 of its own takes nothing from the hold.
func TestInnerWrapperWithASocket(t *testing.T) {
	s := newScene(t)
	s.orphan(nil, func(pid int) { s.must(unix.Kill(pid, unix.SIGKILL)) }, `
test -n "$REG_ROOT" || { mkdir -m 700 "$OUT/state"; exec regctl run --state-home "$OUT/state" --root "$OUT" --endpoint http://127.0.0.1:0 -- sh -c "$0" "$0"; }
readlink /proc/$$/fd/3 >"$OUT/three"; `+orphaned["a session of its own"])
	if got := s.read(s.file("three")); !strings.HasPrefix(got, "socket:") {
		t.Errorf("descriptor 3 is %q", got)
	}
	s.refused(nil, ownerUncertain)
	s.touch("end")
	s.eventually(nil, dead)
	s.admitted(nil)
}

// TestRunAsTheFirstProcess of a pid namespace, as in a container: pid 1 is an owner like others.
func TestRunAsTheFirstProcess(t *testing.T) {
	needWorlds(t)
	s := newScene(t)
	sibling := s.world("elsewhere").inside()
	w := s.run(side{"unshare", "-p", "-f", "--mount-proc", "--kill-child", "--"}, nil, "sh", "-c", untilEnd)
	s.await("the command", func() bool { return exists(s.file("started")) && s.isOpen() })
	if pid := s.claim().Owner.PID; pid != 1 {
		t.Errorf("the owner's pid is %d", pid)
	}
	s.refused(nil, ownerLive)
	s.refused(sibling, ownerUncertain)
	w.signal(unix.SIGKILL) // to unshare, and so to the wrapper
	w.end()
	s.eventually(sibling, dead)
	s.verdict(nil, dead)
	s.admitted(sibling)
}

// TestHoldOfAnUnknownBoot: where the boot id cannot be trusted the hold still tells that a run is over.
func TestHoldOfAnUnknownBoot(t *testing.T) {
	needWorlds(t)
	s := newScene(t)
	covered := s.bootCovered()
	w := s.run(covered, nil, "sh", "-c", untilEnd)
	s.await("the command", func() bool { return exists(s.file("started")) && s.isOpen() })
	s.refused(covered, ownerLive)
	s.refused(nil, ownerLive)
	s.refused(apart, ownerUncertain)
	w.kill()
	s.eventually(apart, dead)
	s.verdict(covered, dead)
	s.admitted(covered)
}
