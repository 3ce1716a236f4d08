//go:build linux

package gardentest

import (
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"holdfast/pkg/fence"
)

// rounds is how often each race is run.
var rounds = 200

// lag sweeps over which of the two comes how much later.
func lag(round int) time.Duration { return time.Duration(round%21-10) * 400 * time.Microsecond }

// decided is the winner of a round, 0 or 1; there is exactly one, and the other is refused with one of the codes. It counts.
func (s *scene) decided(answers [2]answer, refused ...string) int {
	s.Helper()
	winner := slices.IndexFunc(answers[:], func(a answer) bool { return a.status == 0 })
	if winner < 0 || answers[1-winner].status == 0 || !slices.Contains(refused, answers[1-winner].Code) {
		s.Fatalf("want one winner, and a refusal of %q: %s%s", refused, answers[0].output, answers[1].output)
	}
	s.won[winner]++
	s.refused[answers[1-winner].Code]++
	return winner
}

// bothWon: it was a race.
func (s *scene) bothWon() {
	s.Helper()
	if s.Logf("won: %v, refused: %v", s.won, s.refused); s.won[0] == 0 || s.won[1] == 0 {
		s.Error("no race: one of them never won")
	}
}

// TestTwoParentsReserve: one reserves, the other finds the garden being worked on, or the session in the hands of the living.
func TestTwoParentsReserve(t *testing.T) {
	s := newScene(t)
	want := s.reserved(s.people[0])
	for round := range rounds {
		s.plant(s.donor)
		answers := s.race(lag(round), s.reserve(s.people[0]), s.reserve(s.people[1]))
		winner := s.decided(answers, "record-arm-busy", "owner-live")
		want.Owner, want.Generation, want.WrittenAt = s.people[winner].id, answers[winner].Generation, ""
		now := s.now()
		if now.WrittenAt = ""; !reflect.DeepEqual(now, &want) {
			t.Fatalf("%d has won, and the claim is\n%s", winner, now.Encode())
		}
	}
	s.bothWon()
}

// TestChildAdoptsWhileTheParentWithdraws: the child has it and the parent is told so, or the donor's row is back and the child
// is told so. Either happens.
func TestChildAdoptsWhileTheParentWithdraws(t *testing.T) {
	s := newScene(t)
	parent, child := s.people[0], s.people[1]
	for round := range rounds {
		s.plant(s.reserved(parent))
		answers := s.race(lag(round), s.withdraw(parent), s.adopt(child))
		winner := s.decided(answers, "withdraw-not-own", "adopt-not-reserved")
		if winner == 1 {
			s.adopted(child, parent, answers[1])
			continue
		}
		now := s.now()
		want := s.donor
		want.Generation, want.WrittenAt = answers[0].Claim.Generation, now.WrittenAt
		if !reflect.DeepEqual(now, &want) {
			t.Fatalf("withdrawn, the claim is\n%s", now.Encode())
		}
		if _, err := os.Lstat(child.ticket); err == nil {
			t.Fatal("the refused child has a ticket")
		}
		if seen := s.observed(); seen != "lost" {
			t.Fatalf("the withdrawn reservation is %s", seen)
		}
	}
	s.bothWon()
}

// adopted: the claim and the ticket are the child's.
func (s *scene) adopted(child, parent person, a answer) {
	s.Helper()
	now := s.now()
	from := fence.AdoptedRow{Generation: reservation, Owner: parent.id}
	if now.State != fence.Fenced || now.Owner != child.id || now.AdoptedFrom == nil || *now.AdoptedFrom != from || now.Generation != a.Claim.Generation {
		s.Fatalf("adopted, the claim is\n%s", now.Encode())
	}
	content, err := os.ReadFile(child.ticket)
	s.must(err)
	ticket, err := fence.DecodeTicket(content)
	s.must(err)
	if ticket != (fence.Ticket{Resource: s.dir, Generation: now.Generation}) {
		s.Fatalf("the claim is at %s, and the ticket is %+v", now.Generation, ticket)
	}
	if seen := s.observed(); seen != "adopted" {
		s.Fatalf("the adopted reservation is %s", seen)
	}
}

// observed is what observe says of the planted reservation.
func (s *scene) observed() string {
	s.Helper()
	return s.fencectl("observe", "--dir", s.dir, "--generation", reservation).Code
}

// TestTwoChildrenAdopt: one adopts, the other finds the garden being worked on, or nothing reserved any more; it has no ticket.
func TestTwoChildrenAdopt(t *testing.T) {
	s := newScene(t)
	parent := person{id: s.live()}
	for round := range rounds {
		s.plant(s.reserved(parent))
		answers := s.race(lag(round), s.adopt(s.people[0]), s.adopt(s.people[1]))
		winner := s.decided(answers, "record-arm-busy", "adopt-not-reserved")
		s.adopted(s.people[winner], parent, answers[winner])
		if _, err := os.Lstat(s.people[1-winner].ticket); err == nil {
			t.Fatal("the refused child has a ticket")
		}
	}
	s.bothWon()
}
