package fencetest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

// racers is how many seek admission at once.
const racers = 10

// racer is one of them, a process.
type racer struct {
	s   *scene
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

func (s *scene) racer() *racer {
	s.Helper()
	r := &racer{s: s, cmd: s.command("racer", s.dir, s.out)}
	r.cmd.Stderr = os.Stderr
	in, err := r.cmd.StdinPipe()
	s.must(err)
	out, err := r.cmd.StdoutPipe()
	s.must(err)
	s.must(r.cmd.Start())
	r.in, r.out = in, bufio.NewReader(out)
	return r
}

func (r *racer) tell(what string) {
	r.s.Helper()
	_, err := io.WriteString(r.in, what+"\n")
	r.s.must(err)
}

// hear is an answer's word, and what follows it.
func (r *racer) hear() (word, rest string) {
	r.s.Helper()
	line, err := r.out.ReadString('\n')
	r.s.must(err)
	word, rest, _ = strings.Cut(strings.TrimSpace(line), " ")
	return word, rest
}

// do is a step that must succeed.
func (r *racer) do(what string) {
	r.s.Helper()
	r.tell(what)
	if word, rest := r.hear(); word != "done" {
		r.s.Errorf("%s: %s %s", what, word, rest)
	}
}

// kill ends the process and leaves a zombie.
func (r *racer) kill() {
	r.s.Helper()
	r.s.must(r.cmd.Process.Kill())
	err := unix.EINTR
	for err == unix.EINTR {
		no := unix.Waitid(unix.P_PID, r.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if no == nil {
			return
		}
		err = no.(unix.Errno)
	}
	r.s.must(err)
}

// TestTenAdmissionsAtOnce: one wins and the others learn that it lives, whether the owner before has closed or was killed, at
// any state, and whether it has been waited for or is a zombie.
func TestTenAdmissionsAtOnce(t *testing.T) {
	s := newScene(t)
	s.dir = testkit.MemDir(t)
	all := make([]*racer, racers)
	for i := range all {
		all[i] = s.racer()
	}
	for _, r := range all {
		r.hear()
	}
	var zombie *exec.Cmd
	for round := range times(200) {
		won := s.round(all)
		if zombie != nil {
			_ = zombie.Wait()
			zombie = nil
		}
		for _, step := range []string{"leased", "storage-open"}[:round/2%3] {
			all[won].do(step)
		}
		if round%2 == 0 {
			all[won].do("closed")
			continue
		}
		all[won].kill()
		zombie = all[won].cmd
		if round%4 == 1 {
			_ = zombie.Wait()
			zombie = nil
		}
		all[won] = s.racer()
		all[won].hear()
	}
	for _, r := range all {
		r.s.must(r.cmd.Process.Kill())
		_ = r.cmd.Wait()
	}
	s.tidy()
}

// round lets all seek admission at once and returns the one that won.
func (s *scene) round(all []*racer) int {
	s.Helper()
	for _, r := range all {
		r.tell("admit")
	}
	won, generation := -1, ""
	for i, r := range all {
		switch word, rest := r.hear(); {
		case word == "won" && won < 0:
			won, generation = i, rest
		case word == "won":
			s.Errorf("two have won: %d and %d", won, i)
		case word == "tx-held":
			if ms, err := strconv.Atoi(rest); err != nil || ms < 2000 {
				s.Errorf("gave up the wait for the transaction after %s ms", rest)
			}
		case word != ownerLive:
			s.Errorf("a loser was told %s %s", word, rest)
		}
	}
	if won < 0 {
		s.Fatal("nobody has won")
	}
	c := s.claim()
	if c == nil || c.Generation != generation || c.Owner.PID != all[won].cmd.Process.Pid {
		s.Errorf("the winner wrote %s, the claim is %+v", generation, c)
	}
	return won
}

// tidy fails when something is left in the directory that should not be: only the claim and the hold stay.
func (s *scene) tidy() {
	s.Helper()
	entries, err := os.ReadDir(s.dir)
	s.must(err)
	for _, e := range entries {
		if e.Name() != "entwurf-owner.json" && e.Name() != "entwurf-owner.hold" {
			s.Errorf("%s is left", e.Name())
		}
	}
}

// TestTenRunsAtOnce: one command runs, alone; nine wrappers are refused; the next round is the same.
func TestTenRunsAtOnce(t *testing.T) {
	s := newScene(t)
	for round := range times(5) {
		release := fmt.Sprint("release", round)
		var all []*wrapper
		for i := range racers {
			all = append(all, s.run(nil, []string{"--conflict-exit-code", fmt.Sprint(30 + i)},
				"sh", "-c", `mkdir "$OUT/inside" || touch "$OUT/two"; until test -e "$OUT/$0"; do sleep 0.01; done; rmdir "$OUT/inside"; exit 7`, release))
		}
		lost := 0
		s.await("nine to be refused", func() bool {
			lost = 0
			for _, w := range all {
				if w.hasEnded() {
					lost++
				}
			}
			return lost >= racers-1
		})
		s.await("the command", func() bool { return exists(s.file("inside")) })
		s.touch(release)
		winners := 0
		for i, w := range all {
			status := w.end()
			if status == 7 {
				winners++
				continue
			}
			if a := w.refusal(); status != 30+i || a.Code != ownerLive && a.Code != "tx-held" {
				s.Errorf("a loser: status %d, %s: %s", status, a.Code, a.Reason)
			}
		}
		if winners != 1 || lost != racers-1 {
			s.Errorf("%d have won, %d were refused before it ended", winners, lost)
		}
		if c := s.claim(); c.State != "closed" {
			s.Errorf("round %d ends %s", round, c.State)
		}
	}
	if exists(s.file("two")) {
		s.Error("two commands ran at once")
	}
	s.tidy()
}
