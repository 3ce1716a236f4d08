package lease

import (
	"testing"

	"holdfast/internal/testkit"
)

// The parts that other processes play in these tests.
func TestMain(m *testing.M) {
	testkit.Main(m, map[string]testkit.Part{
		"contender": contender,
		"worker":    worker,
	})
}
