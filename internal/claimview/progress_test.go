package claimview

import (
	"testing"
	"time"

	"holdfast/pkg/claim"
)

// Off a terminal, and without one, a wait looks at nothing: it must not cost those who wait.
func TestAWaitThatNobodySeesLooksAtNothing(t *testing.T) {
	var p Progress
	p.Waiting(func() (claim.Inspection, error) {
		t.Error("it looked")
		return claim.Inspection{}, nil
	}, time.Minute)
}
