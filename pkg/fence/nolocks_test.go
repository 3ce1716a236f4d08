package fence

import (
	"testing"

	"holdfast/pkg/procid"
)

// Where the filesystem has no locks, a hold that names somebody says that a run has been there, and nothing about its end.
func TestWithoutLocksTheEndOfARunIsNotKnown(t *testing.T) {
	dead := procid.Verdict{Word: procid.Dead}
	owner := procid.Identity{PID: 7, StartKey: "k", Hostname: "h"}
	if got := judged(dead, owner, Hold{State: HoldNoLocks, Owner: owner}, true); got.Word != procid.Uncertain {
		t.Errorf("%+v", got)
	}
	if got := judged(dead, owner, Hold{State: HoldNoLocks}, true); got.Word != procid.Dead {
		t.Errorf("an empty hold, of a run that was refused: %+v", got)
	}
}

// Taking an admission back never writes schema 1, which only the other implementation does.
func TestPuttingBackARowOfSchema1(t *testing.T) {
	was := &Claim{SchemaVersion: SchemaLegacy, State: Closed, Selected: Selected{N: "n", Directory: "/p/experimental/durable-sessions/h/n"}}
	now := &Claim{SchemaVersion: SchemaDurable, Selected: Selected{N: "n", Directory: "/p/experimental/durable-sessions/h/n", Profile: "/p"}}
	got := restored(&Admission{Claim: now, Replaced: was}, write{Generation: "g", At: "t"})
	if got.SchemaVersion != SchemaDurable || got.Selected != now.Selected || got.State != Closed || got.Generation != "g" {
		t.Errorf("%+v", got)
	}
}
