package procid

import (
	"testing"

	"holdfast/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m, parts()) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
