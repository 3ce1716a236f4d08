//go:build linux

package holdfast_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/pkg/fence"
	"holdfast/pkg/procid"
)

// The garden that is planted.
const (
	crashGarden      = "20260101T000000-abcdef"
	crashIncarnation = "i1"
	crashCWD         = "/work"
)

func (s *crashSession) meta() string { return filepath.Join(s.root, "meta") }

// garden are the flags that name it.
func (s *crashSession) garden(verb string, args ...string) []string {
	return append([]string{verb, "--garden", crashGarden, "--meta-root", s.meta()}, args...)
}

const (
	crashRecord   = "meta/meta-sessions/" + crashGarden + ".meta.json"
	crashLocation = "meta/meta-receivers/" + crashGarden + ".location.json"
)

// plantGarden plants the pair that an enrolment of this owner has left.
func (s *crashSession) plantGarden(t testing.TB, owner procid.Identity) {
	t.Helper()
	s.plant(t, crashRecord, fmt.Appendf(nil, `{"gardenId": %q, "nativeSessionId": "s", "attachIncarnation": %q, "cwd": %q, "note": "kept"}`,
		crashGarden, crashIncarnation, crashCWD))
	location, err := json.Marshal(fence.Location{
		SchemaVersion: 1, GardenID: crashGarden, AttachIncarnation: crashIncarnation, NativeDirectory: s.dir,
		OwnerPID: owner.PID, OwnerStartKey: owner.StartKey, WrittenAt: crashAt,
	})
	crashCheck(t, err)
	s.plant(t, crashLocation, location)
}

// TestKilledEnroll: the record and the location are each the old or a whole new one; a pair that does not agree is named, and
// cured by enrolling again.
func TestKilledEnroll(t *testing.T) {
	for name, plant := range map[string]func(t testing.TB, s *crashSession){
		"first": func(testing.TB, *crashSession) {},
		"again": func(t testing.TB, s *crashSession) { s.plantGarden(t, s.dead()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killFence(t, func(t testing.TB) fenceScene {
				s := newCrashSession(t)
				s.own(t, fence.StorageOpen, true)
				plant(t, s)
				return fenceScene{crashSession: s, args: s.garden("enroll", "--cwd", crashCWD, "--ticket", s.ticket),
					leaves: "arm record location", judge: s.judgeEnrolled, again: s.reenroll}
			})
		})
	}
}

func (s *crashSession) judgeEnrolled(t testing.TB, a fenceAftermath) {
	t.Helper()
	record, location := crashPair(t, a.now)
	switch {
	case a.written():
		t.Fatal("an enrolment wrote a claim")
	case a.done && (record == "" || record != location || record == crashIncarnation):
		t.Fatalf("the incarnations are %q and %q", record, location)
	case location != "" && location != crashIncarnation && record != location:
		t.Fatalf("the location, of %q, came before the record, of %q", location, record)
	case a.before[crashRecord] != "" && !strings.Contains(a.now[crashRecord], `"note": "kept"`):
		t.Fatalf("the record has lost a member: %q", a.now[crashRecord])
	}
}

// crashPair are the incarnations of the record and the location; empty where there is none.
func crashPair(t testing.TB, files map[string]string) (record, location string) {
	t.Helper()
	if content := files[crashRecord]; content != "" {
		r, err := fence.DecodeRecord([]byte(content))
		crashCheck(t, err)
		record = r.AttachIncarnation
	}
	if content := files[crashLocation]; content != "" {
		l, err := fence.DecodeLocation([]byte(content))
		crashCheck(t, err)
		location = l.AttachIncarnation
	}
	return record, location
}

// reenroll follows what a reservation says of the pair, until it is refused for nothing but the owner; then the owner ends, and
// the session is handed on.
func (s *crashSession) reenroll(t testing.TB, a fenceAftermath) {
	t.Helper()
	record, location := crashPair(t, a.now)
	switch asked := s.fencectl(t, s.garden("reserve", "--owner-pid", s.pid())...); {
	case record != "" && record == location:
		asked.is(1, "owner-live")
	case record != "" && location != "":
		s.enrollBy(t, asked.is(1, "binding-mismatch"))
	default:
		s.enrollBy(t, asked.is(1, "profile-record-unbound"))
	}
	if record, location := crashPair(t, s.files(t)); record == "" || record != location {
		t.Fatalf("the incarnations are %q and %q", record, location)
	}
	if record != crashIncarnation {
		s.finish(t)
		s.fencectl(t, s.garden("reserve", "--owner-pid", s.pid())...).is(0, "reserved")
	}
}

// enrollBy fills in the command that a refusal prints.
func (s *crashSession) enrollBy(t testing.TB, refused fenceAnswer) {
	t.Helper()
	command := strings.NewReplacer(" CWD ", " "+crashCWD+" ", " FILE ", " "+s.ticket+" ").Replace(refused.Remedy)
	s.paste(t, command).is(0, "enrolled")
}

// TestKilledReserve: a reservation that was made is there whole, and its parent withdraws it; one that was not can be made.
func TestKilledReserve(t *testing.T) {
	for name, c := range map[string]struct {
		row    func(t testing.TB, s *crashSession) *fence.Claim
		native string
	}{
		"closed donor": {func(_ testing.TB, s *crashSession) *fence.Claim { return s.claim(fence.Closed, s.dead()) }, "absent"},
		"dead donor": {func(t testing.TB, s *crashSession) *fence.Claim {
			s.lease(t)
			return s.claim(fence.StorageOpen, s.dead())
		}, "present-attributed"},
		"dead parent": {func(_ testing.TB, s *crashSession) *fence.Claim {
			return s.reserved(s.dead(), s.claim(fence.Closed, s.dead()), "absent")
		}, "absent"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killFence(t, func(t testing.TB) fenceScene {
				s := newCrashSession(t)
				row := c.row(t, s)
				s.plantClaim(t, row)
				s.plantGarden(t, s.dead())
				return fenceScene{crashSession: s, args: s.garden("reserve", "--owner-pid", s.pid()), leaves: "arm",
					judge: func(t testing.TB, a fenceAftermath) { s.judgeReserved(t, a, c.native) }, again: s.handOn}
			})
		})
	}
}

func (s *crashSession) judgeReserved(t testing.TB, a fenceAftermath, native string) {
	t.Helper()
	c := a.claim
	if c == nil || a.done && !a.written() {
		t.Fatalf("the claim is %+v", c)
	}
	if a.written() && (c.State != fence.Reserved || c.Owner != s.self || c.Reservation.NativeLease != native || c.Reservation.From.Owner != s.dead() ||
		(c.ReclaimedFrom == nil) != (a.old.State == fence.Closed)) {
		t.Fatalf("the reservation is %+v", c)
	}
}

// handOn withdraws a reservation that was made, if any, makes another and has it adopted.
func (s *crashSession) handOn(t testing.TB, a fenceAftermath) {
	t.Helper()
	if a.written() {
		s.fencectl(t, s.withdrawing(a.claim.Generation)...).is(0, "withdrawn")
		if c := s.current(t); c.State != a.claim.Reservation.From.State || c.Owner != s.dead() || c.Reservation != nil {
			t.Fatalf("withdrawn, the claim is %+v", c)
		}
	}
	made := s.fencectl(t, s.garden("reserve", "--owner-pid", s.pid())...).is(0, "reserved")
	s.fencectl(t, s.adopting(made.Generation)...).is(0, "adopted")
	s.finish(t)
}

func (s *crashSession) withdrawing(generation string) []string {
	return []string{"withdraw", "--dir", s.dir, "--generation", generation, "--owner-pid", s.pid()}
}

func (s *crashSession) adopting(generation string) []string {
	return []string{"admit", "--dir", s.dir, "--owner-pid", s.pid(), "--ticket", s.ticket,
		"--adopt-garden", crashGarden, "--meta-root", s.meta(), "--adopt-generation", generation}
}

// TestKilledAdopt: the child has it and goes on by its ticket, or it is reserved still and the child adopts it.
func TestKilledAdopt(t *testing.T) {
	killFence(t, func(t testing.TB) fenceScene {
		s := newCrashSession(t)
		s.plantClaim(t, s.reserved(s.self, s.claim(fence.Closed, s.dead()), "absent"))
		s.plantGarden(t, s.dead())
		args := s.adopting(crashGeneration)
		return fenceScene{crashSession: s, args: args, leaves: "arm ticket",
			judge: func(t testing.TB, a fenceAftermath) {
				s.judgeAdmitted(t, a, fence.Fenced)
				if a.written() && (a.claim.AdoptedFrom == nil || a.claim.AdoptedFrom.Generation != crashGeneration || a.claim.ReclaimedFrom != nil) {
					t.Fatalf("the adopted claim is %+v", a.claim)
				}
			},
			again: func(t testing.TB, a fenceAftermath) { s.readmit(t, a, args, "adopted") }}
	})
}

// TestKilledWithdraw: the donor's row is back, or the reservation is there and its parent withdraws it.
func TestKilledWithdraw(t *testing.T) {
	killFence(t, func(t testing.TB) fenceScene {
		s := newCrashSession(t)
		donor := s.claim(fence.Closed, s.dead())
		s.plantClaim(t, s.reserved(s.self, donor, "absent"))
		args := s.withdrawing(crashGeneration)
		return fenceScene{crashSession: s, args: args,
			judge: func(t testing.TB, a fenceAftermath) {
				c := a.claim
				if c == nil || a.done && !a.written() {
					t.Fatalf("the claim is %+v", c)
				}
				if a.written() && (c.State != fence.Closed || c.Owner != donor.Owner || *c.End != *donor.End || c.Reservation != nil || c.ReclaimedFrom != nil) {
					t.Fatalf("withdrawn, the claim is %+v", c)
				}
			},
			again: func(t testing.TB, a fenceAftermath) {
				if !a.written() {
					s.fencectl(t, args...).is(0, "withdrawn")
				}
			}}
	})
}
