//go:build linux

package losstest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/internal/testkit"
)

// nest is the command of a run in the scene's run: it holds lease b and runs the command.
func (s *scene) nest(command ...string) []string {
	return append([]string{
		"leasectl", "run", "--lock", s.inner(), "--duration", "5s", "--grace", "1s", "--events", s.innerEvents(), "--",
	}, command...)
}

// The lease of the inner run is not on the filesystem that the outer one loses.
func (s *scene) inner() string       { return filepath.Join(s.evidence, "b.lock") }
func (s *scene) innerEvents() string { return filepath.Join(s.evidence, "inner-events") }

// order fails unless events of the outer and the inner run came in this order: "outer NAME" or "inner NAME".
func (s *scene) order(want ...string) {
	s.Helper()
	var last time.Time
	for _, name := range want {
		path := s.events
		if strings.HasPrefix(name, "inner ") {
			path = s.innerEvents()
		}
		all := s.eventsIn(path)
		i := slices.IndexFunc(all, func(e noted) bool { return strings.HasSuffix(name, " "+e.Event) })
		switch {
		case i < 0:
			s.Errorf("no event %q", name)
		case all[i].At.Before(last):
			s.Errorf("%q was %s before what it should follow", name, last.Sub(all[i].At))
		default:
			last = all[i].At
		}
	}
}

// TestNestedRunsEndInOrder: the outer lease is lost. The innermost command ends first, then the inner run gives its lease
// back, then the outer one ends.
func TestNestedRunsEndInOrder(t *testing.T) {
	s := newScene(t)
	s.run(s.nest("stamp", "child", "polite")...)
	s.must(os.Remove(s.lock))
	s.lost("absent")
	s.order("inner acquired", "outer lost", "outer terminating", "inner child-exited", "inner released", "outer child-exited")
	if there := lookedAt(s.inner()); there != "nothing" {
		t.Errorf("the inner lease is left: %s", there)
	}
	if e, _ := s.event("child-exited"); e.Status == nil || *e.Status != 0 {
		t.Errorf("the inner run ended with %v, want its command's 0", e.Status)
	}
}

// TestNestedRunsWithADeafCommand: what does not end by itself is killed, by the outer run, with the inner run. The inner
// lease is left to expire; nothing of its command runs then.
func TestNestedRunsWithADeafCommand(t *testing.T) {
	s := newScene(t)
	jam, _ := s.runApart(s.nest("stamp", "child", "deaf")...)
	jam()
	other := s.contend()
	s.lost("renewal-overdue")
	other.wins()
	var left leaseSeen
	s.must(json.Unmarshal([]byte(s.read(s.inner())), &left))
	s.overBefore("the inner lease's end", left.ExpiresAt)
}

// TestInnerLossEndsTheOuterRunWell: the inner lease is lost. Its run ends with 124, which is the outer run's command's own
// status, so that one gives its lease back.
func TestInnerLossEndsTheOuterRunWell(t *testing.T) {
	s := newScene(t)
	s.run(s.nest("stamp", "child", "polite")...)
	s.must(os.WriteFile(s.inner(), []byte("{"), 0o644))
	s.unharmed(statusLost)
	s.order("outer acquired", "inner acquired", "inner lost", "inner child-exited", "outer child-exited", "outer released")
	if lines := strings.Count(s.stderr(), "status 124 is leasectl's own"); lines != 2 { // the object and the line
		t.Errorf("standard error:\n%s", s.stderr())
	}
	if there := lookedAt(s.inner()); !strings.Contains(there, `"{"`) {
		t.Errorf("the inner lease became %s", there)
	}
}

// TestTimeNamespace: in a time namespace whose boot clock runs apart by days, a run keeps and loses its lease at the same
// wall-clock times as everybody else.
func TestTimeNamespace(t *testing.T) {
	t.Parallel()
	testkit.NeedRoot(t)
	testkit.NeedTool(t, "unshare")
	for _, offset := range []string{"864000", "-1"} {
		apart := []string{"unshare", "--time", "--boottime", offset, "--fork", "--kill-child"}
		t.Run("renewed/"+offset, func(t *testing.T) {
			s := newScene(t)
			s.grace = shortGrace
			s.runUnder(apart, "sh", "-c", "stamp child & sleep 5; kill $!; wait; exit 7")
			s.unharmed(7)
			if _, told := s.event("renewed"); !told {
				t.Errorf("never renewed: %s", s.read(s.events))
			}
			if e, told := s.event("clock-jump"); told {
				t.Errorf("a jump was told: %+v", e)
			}
		})
		t.Run("lost/"+offset, func(t *testing.T) {
			s := newScene(t)
			s.runUnder(apart, "stamp", "child", "deaf")
			leave := s.holdTheClaim()
			other := s.contend()
			s.await("loss", func() bool { _, told := s.event("lost"); return told })
			s.sleepUntil(1)
			leave()
			other.wins()
			s.lost("renewal-overdue")
		})
	}
}
