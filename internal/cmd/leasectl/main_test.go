package leasectl_test

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"holdfast/internal/clikit"
	"holdfast/internal/cmd/leasectl"
	"holdfast/internal/testkit"
)

// TestMain puts the program on PATH, as this very binary, and the child that counts signals.
func TestMain(m *testing.M) {
	// The race detector makes every process sleep for a second at its end unless it is told not to.
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	testscript.Main(testkit.Wide{M: m}, map[string]func(){
		"leasectl":      func() { os.Exit(leasectl.Main(clikit.Env{Args: os.Args})) },
		"count-signals": countSignals,
	})
}
