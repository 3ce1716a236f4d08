//go:build linux

package losstest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

// killPoints are a renewal's system calls on the state, in their order, and what is given to them: a name in the directory,
// or a descriptor of the file. The wrapper is killed at the entry of the call, so that one has not happened.
var killPoints = []struct {
	call, suffix string
	descriptor   bool
	written      bool // the new lease is there
}{
	{"openat", ".mutex", false, false},
	{"flock", ".mutex", true, false},
	{"write", ".mutex", true, false},
	{"unlinkat", ".stage", false, false},
	{"openat", ".stage", false, false},
	{"write", ".stage", true, false},
	{"fdatasync", ".stage", true, false},
	{"/^rename", ".stage", false, false},
	{"openat", ".journal", false, true},
	{"unlinkat", ".mutex", false, true},
}

// TestKilledInARenewal: wherever in a renewal the wrapper is killed, its command dies with it, the lease is the old or the new
// one, and after it has expired somebody else gets it, by the printed remedy if a claim is left.
func TestKilledInARenewal(t *testing.T) {
	t.Parallel()
	testkit.NeedTool(t, "strace")
	for _, p := range killPoints {
		t.Run(strings.Trim(p.call, "/^")+p.suffix, func(t *testing.T) {
			s := newScene(t)
			s.duration, s.grace = 4*time.Second, time.Second
			s.run("stamp", "child", "deaf")
			matched := filepath.Base(s.lock) + p.suffix
			if p.descriptor {
				matched = s.lock + p.suffix
			}
			s.killAt(p.call, matched)
			seen := s.sight.all()
			old := seen[len(seen)-1]
			if status := s.end(); status != statusKill {
				t.Fatalf("the wrapper ended with %d: %s", status, s.stderr())
			}
			s.await("death of the command", func() bool { return len(s.mark.Processes()) == 0 })
			s.overBeforeLoosely("the wrapper was killed", s.endedAt, scheduling)

			seen = s.sight.all()
			now := seen[len(seen)-1]
			if now.HolderID != old.HolderID || now.Fence != old.Fence || (now.Token != old.Token) != p.written {
				t.Errorf("the lease was %+v, is %+v", old, now)
			}
			s.succession(now)
		})
	}
}

// killAt makes the wrapper be killed at its next call of that name on that path.
func (s *scene) killAt(call, path string) {
	s.Helper()
	cmd := exec.Command("strace", "-f", "-p", fmt.Sprint(s.wrapper.Process.Pid), "-o", "/dev/null", "-P", path,
		"-e", "trace="+call, "-e", "inject="+call+":signal=KILL:when=1")
	errs, err := cmd.StderrPipe()
	s.must(err)
	s.must(cmd.Start())
	s.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for lines := bufio.NewScanner(errs); ; {
		if !lines.Scan() {
			s.Fatal("strace could not attach")
		}
		if strings.Contains(lines.Text(), " attached") {
			return
		}
	}
}

// succession fails unless another holder can follow on the lease that a killed wrapper has left.
func (s *scene) succession(left leaseSeen) {
	s.Helper()
	if status := s.asked("status"); status.Code != "held" && status.Code != "expired" {
		s.Errorf("the status is %s", status.Code)
	}
	if there := lookedAt(s.lock + ".mutex"); there != "nothing" {
		claim := s.asked("claim", "inspect")
		if claim.Remedy == "" {
			s.Fatalf("a claim is left (%s, %s) without a remedy", there, claim.Code)
		}
		command, _, _ := strings.Cut(claim.Remedy, " (only") // a warning may follow
		if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
			s.Fatalf("%s: %v: %s", command, err, out)
		}
	}
	time.Sleep(time.Until(left.ExpiresAt))
	got := s.asked("acquire", "--take-over")
	if got.Code != "acquired" || got.Lease.Fence != left.Fence+1 || got.TakenOver.Token != left.Token {
		s.Errorf("the successor got %+v", got)
	}
}

// reply is what leasectl prints.
type reply struct {
	Code, Remedy     string
	Lease, TakenOver leaseSeen
}

func (s *scene) asked(args ...string) (r reply) {
	s.Helper()
	out, err := exec.Command("leasectl", append(args, "--lock", s.lock, "--format", "json")...).Output()
	if jsonErr := json.Unmarshal(out, &r); jsonErr != nil {
		s.Fatalf("leasectl %v: %v, %s", args, err, out)
	}
	return r
}

// TestKilledAtAnyTime kills wrappers at moments around a renewal, outside any call that is traced.
func TestKilledAtAnyTime(t *testing.T) {
	t.Parallel()
	for i := range 6 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			s := newScene(t)
			s.duration, s.grace = 2*time.Second, 500*time.Millisecond
			s.run("stamp", "child", "deaf")
			s.sleepUntil(0.5)
			time.Sleep(time.Duration(i) * s.duration / 100) // a tick is a twentieth
			s.signal(s.wrapper.Process.Pid, unix.SIGKILL)
			if status := s.end(); status != statusKill {
				t.Fatalf("the wrapper ended with %d: %s", status, s.stderr())
			}
			s.await("death of the command", func() bool { return len(s.mark.Processes()) == 0 })
			seen := s.sight.all()
			s.succession(seen[len(seen)-1])
		})
	}
}
