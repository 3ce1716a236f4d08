//go:build linux

package gardentest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"holdfast/internal/testkit"
	"holdfast/pkg/fence"
	"holdfast/pkg/procid"
)

const (
	garden      = "20260101T000000-abcdef"
	incarnation = "i1"
	cwd         = "/work"
	reservation = "0000000000000000000000000000000a" // the generation of one that is planted
	donated     = "0000000000000000000000000000000b"
	at          = "2026-01-01T00:00:00.000Z"
)

// person is a process that may be an owner, while the test lasts.
type person struct {
	id     procid.Identity
	ticket string
}

// scene is a session of a garden, with two who want it.
type scene struct {
	*testing.T
	root, dir, meta string
	people          [2]person
	donor           fence.Claim // closed, of an owner that is gone
	won             [2]int
	refused         map[string]int // by code
}

func newScene(t *testing.T) *scene {
	t.Helper()
	t.Parallel()
	root, err := filepath.EvalSymlinks(testkit.MemDir(t))
	s := &scene{T: t, root: root, dir: filepath.Join(root, "s"), meta: filepath.Join(root, "meta"), refused: map[string]int{}}
	s.must(err)
	for _, dir := range []string{"s", "t", "meta", "meta/meta-sessions", "meta/meta-receivers"} {
		s.must(os.Mkdir(filepath.Join(root, dir), 0o755))
	}
	for i := range s.people {
		s.people[i] = person{s.live(), filepath.Join(root, "t", fmt.Sprintf("%d.ticket", i))}
	}
	s.donor = s.closed(s.gone())
	s.plantGarden()
	return s
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// live is a process that lives as long as the test.
func (s *scene) live() procid.Identity {
	s.Helper()
	cmd := exec.Command("sleep", "1000")
	s.must(cmd.Start())
	s.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	id, err := procid.Of(cmd.Process.Pid)
	s.must(err)
	return id
}

// gone is an owner that is proven dead: another process has its pid by now.
func (s *scene) gone() procid.Identity {
	id := s.people[0].id
	key := procid.ParseKey(id.StartKey)
	key.Ticks = 1
	id.StartKey = key.String()
	return id
}

func (s *scene) closed(owner procid.Identity) fence.Claim {
	return fence.Claim{
		SchemaVersion: fence.SchemaPlain, Resource: s.dir, Selected: fence.Selected{N: "s", Directory: s.dir}, State: fence.Closed,
		Owner: owner, Generation: donated, WrittenAt: at, Lease: fence.Released,
		FirstParticipation: fence.First{At: at, Generation: donated, From: fence.FromFresh},
		End:                &fence.End{At: at, Storage: fence.StorageClosed, Lease: fence.Released},
	}
}

// reserved is the donor's session, reserved by a parent.
func (s *scene) reserved(parent person) fence.Claim {
	c, d := s.donor, s.donor
	c.State, c.Owner, c.Generation, c.Lease, c.End = fence.Reserved, parent.id, reservation, fence.NeverHeld, nil
	c.Reservation = &fence.Reservation{
		GardenID: garden, N: "s", CWD: cwd, Resource: s.dir, AttachIncarnation: incarnation, NativeLease: "absent",
		From: fence.Donor{Generation: d.Generation, State: d.State, Owner: d.Owner, Lease: d.Lease, End: d.End, Selected: d.Selected},
	}
	return c
}

func (s *scene) plantGarden() {
	s.Helper()
	record := fmt.Appendf(nil, `{"gardenId": %q, "nativeSessionId": "s", "attachIncarnation": %q, "cwd": %q}`, garden, incarnation, cwd)
	s.must(os.WriteFile(filepath.Join(s.meta, "meta-sessions", garden+".meta.json"), record, 0o600))
	location, err := json.Marshal(fence.Location{
		SchemaVersion: 1, GardenID: garden, AttachIncarnation: incarnation, NativeDirectory: s.dir,
		OwnerPID: s.donor.Owner.PID, OwnerStartKey: s.donor.Owner.StartKey, WrittenAt: at,
	})
	s.must(err)
	s.must(os.WriteFile(filepath.Join(s.meta, "meta-receivers", garden+".location.json"), location, 0o600))
}

// plant begins a round: the claim, and no ticket.
func (s *scene) plant(c fence.Claim) {
	s.Helper()
	s.must(os.WriteFile(filepath.Join(s.dir, fence.ClaimName), c.Encode(), 0o600))
	for _, p := range s.people {
		_ = os.Remove(p.ticket)
	}
}

// now is the claim at the end of a round, which has left no lock and no temp.
func (s *scene) now() *fence.Claim {
	s.Helper()
	content, err := os.ReadFile(filepath.Join(s.dir, fence.ClaimName))
	s.must(err)
	c, err := fence.Decode(content)
	s.must(err)
	for _, left := range []string{"s/*.tx", "s/*.tmp-*", "t/*.tmp-*", "meta/meta-record-arm-locks/*"} {
		if found, _ := filepath.Glob(filepath.Join(s.root, left)); len(found) > 0 {
			s.Fatalf("left behind: %q", found)
		}
	}
	return c
}

func (s *scene) reserve(p person) []string {
	return []string{"reserve", "--garden", garden, "--meta-root", s.meta, "--owner-pid", strconv.Itoa(p.id.PID)}
}

func (s *scene) adopt(p person) []string {
	return []string{"admit", "--dir", s.dir, "--owner-pid", strconv.Itoa(p.id.PID), "--ticket", p.ticket,
		"--adopt-garden", garden, "--meta-root", s.meta, "--adopt-generation", reservation}
}

func (s *scene) withdraw(p person) []string {
	return []string{"withdraw", "--dir", s.dir, "--generation", reservation, "--owner-pid", strconv.Itoa(p.id.PID)}
}

// answer is what a contender said.
type answer struct {
	status     int
	output     string
	Code       string
	Generation string
	Claim      *struct{ Generation string }
}

// race starts both behind the barrier and lets them go; the second one waits for the lag, the first one when that is negative.
func (s *scene) race(lag time.Duration, first, second []string) (answers [2]answer) {
	s.Helper()
	begin, release, err := os.Pipe()
	s.must(err)
	var both [2]*exec.Cmd
	var outputs [2]bytes.Buffer
	for i, args := range [][]string{first, second} {
		delay := max(0, lag)
		if i == 0 {
			delay = max(0, -lag)
		}
		both[i] = exec.Command("contender", append([]string{delay.String()}, args...)...)
		both[i].Stdout, both[i].Stderr = &outputs[i], os.Stderr
		if !testing.Verbose() {
			both[i].Stderr = nil
		}
		s.startReady(both[i], begin)
	}
	begin.Close()
	release.Close()
	for i, cmd := range both {
		_ = cmd.Wait()
		answers[i] = answer{status: cmd.ProcessState.ExitCode(), output: outputs[i].String()}
		if err := json.Unmarshal(outputs[i].Bytes(), &answers[i]); err != nil {
			s.Fatalf("%v: %q", err, answers[i].output)
		}
	}
	return answers
}

// startReady starts a contender and waits until it stands at the barrier.
func (s *scene) startReady(cmd *exec.Cmd, begin *os.File) {
	s.Helper()
	ready, said, err := os.Pipe()
	s.must(err)
	defer ready.Close()
	cmd.ExtraFiles = []*os.File{said, begin}
	s.must(cmd.Start())
	said.Close()
	_, err = io.Copy(io.Discard, ready)
	s.must(err)
}

// fencectl asks about the end of a round.
func (s *scene) fencectl(args ...string) (a answer) {
	s.Helper()
	out, _ := exec.Command("fencectl", args...).Output()
	a.output = string(out)
	s.must(json.Unmarshal(out, &a))
	return a
}
