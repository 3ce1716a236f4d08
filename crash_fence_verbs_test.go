//go:build linux

package holdfast_test

import (
	"os"
	"testing"

	"holdfast/pkg/fence"
)

// TestKilledAdmit kills an admission over each of what it may meet.
func TestKilledAdmit(t *testing.T) {
	for name, plant := range map[string]func(t testing.TB, s *crashSession){
		"fresh":   func(t testing.TB, s *crashSession) { crashCheck(t, os.Remove(s.dir)) },
		"unarmed": func(testing.TB, *crashSession) {},
		"closed":  func(t testing.TB, s *crashSession) { s.plantClaim(t, s.claim(fence.Closed, s.dead())) },
		"dead owner": func(t testing.TB, s *crashSession) {
			s.plantClaim(t, s.claim(fence.StorageOpen, s.dead()))
			s.lease(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killFence(t, func(t testing.TB) fenceScene {
				s := newCrashSession(t)
				plant(t, s)
				args := []string{"admit", "--dir", s.dir, "--owner-pid", s.pid(), "--ticket", s.ticket}
				if name == "fresh" {
					args = append(args, "--create")
				}
				return fenceScene{crashSession: s, args: args, leaves: "ticket dir",
					judge: func(t testing.TB, a fenceAftermath) { s.judgeAdmitted(t, a, fence.Fenced) },
					again: func(t testing.TB, a fenceAftermath) { s.readmit(t, a, args, "admitted") }}
			})
		})
	}
}

// judgeAdmitted: a new claim is the owner's, and keeps what the old one has to hand on.
func (s *crashSession) judgeAdmitted(t testing.TB, a fenceAftermath, state fence.State) {
	t.Helper()
	c := a.claim
	switch {
	case !a.written() && a.done:
		t.Fatal("nobody was admitted")
	case !a.written():
		return
	case c.State != state || c.Owner != s.self:
		t.Fatalf("the new claim is %+v", c)
	case a.old != nil && c.FirstParticipation != a.old.FirstParticipation:
		t.Fatalf("the first participation was %+v, is %+v", a.old.FirstParticipation, c.FirstParticipation)
	case a.old != nil && a.old.State == fence.StorageOpen && (c.ReclaimedFrom == nil || c.ReclaimedFrom.Generation != a.old.Generation):
		t.Fatalf("it was taken over from %s, and says %+v", a.old.Generation, c.ReclaimedFrom)
	}
}

// readmit goes on after a killed admission: an owner whose claim is there marks by its ticket; else what is left of the ticket
// goes, as its refusal says, and the owner is admitted.
func (s *crashSession) readmit(t testing.TB, a fenceAftermath, args []string, code string) {
	t.Helper()
	if !a.written() {
		if s.readTicket(t) != nil {
			before := s.files(t)
			if m := s.fencectl(t, "mark", "leased", "--ticket", s.ticket); m.Code != "claim-missing" && m.Code != "generation-mismatch" {
				t.Fatalf("a ticket without a claim was answered with %s", m.output)
			}
			if changed := crashChanged(before, s.files(t)); len(changed) > 0 {
				t.Fatalf("the refused mark changed %q", changed)
			}
			refused := s.fencectl(t, args...).is(1, "ticket-exists")
			s.pasted(t, refused)
		}
		s.fencectl(t, args...).is(0, code)
	}
	s.fencectl(t, "mark", "leased", "--ticket", s.ticket).is(0, "marked")
	s.finish(t)
}

// TestKilledMark kills each step of an owner. Afterwards the owner goes on by its ticket.
func TestKilledMark(t *testing.T) {
	for name, c := range map[string]struct {
		from      fence.State
		attempted bool
		args      []string
		to        fence.State
	}{
		"leased":          {fence.Fenced, false, []string{"leased"}, fence.Leased},
		"storage-attempt": {fence.Leased, false, []string{"storage-attempt"}, fence.Leased},
		"storage-open":    {fence.Leased, true, []string{"storage-open"}, fence.StorageOpen},
		"closed":          {fence.StorageOpen, true, []string{"closed"}, fence.Closed},
		"close-failed":    {fence.StorageOpen, true, []string{"close-failed", "--cause", "disk full"}, fence.CloseFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killFence(t, func(t testing.TB) fenceScene {
				s := newCrashSession(t)
				s.own(t, c.from, c.attempted)
				args := append(append([]string{"mark"}, c.args...), "--ticket", s.ticket)
				return fenceScene{crashSession: s, args: args, leaves: "ticket",
					judge: func(t testing.TB, a fenceAftermath) { s.judgeMarked(t, a, c.to) },
					again: func(t testing.TB, a fenceAftermath) {
						if !a.written() {
							s.fencectl(t, args...).is(0, "marked")
						}
						s.finish(t)
					}}
			})
		})
	}
}

func (s *crashSession) judgeMarked(t testing.TB, a fenceAftermath, to fence.State) {
	t.Helper()
	switch moves := to != a.old.State; {
	case a.claim == nil:
		t.Fatal("the claim is gone")
	case a.done && (moves != a.written() || !moves && !s.readTicket(t).StorageOpenAttempted):
		t.Fatal("the step was not recorded")
	case a.written() && (a.claim.State != to || a.claim.Owner != s.self || a.claim.FirstParticipation != a.old.FirstParticipation):
		t.Fatalf("the new claim is %+v", a.claim)
	}
}
