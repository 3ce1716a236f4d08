// Package fencetest runs the real fencectl, many of it and in many places at once, with real commands below it, and shows
// that a session directory never has two owners.
package fencetest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"holdfast/internal/clikit"
	"holdfast/internal/cmd/fencectl"
	"holdfast/internal/cmd/regctl"
	"holdfast/internal/testkit"
)

// TestMain makes this binary serve as the programs that the scenes start by name.
func TestMain(m *testing.M) {
	// The race detector makes every process sleep for a second at its end unless it is told not to.
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	testscript.Main(testkit.Wide{M: m}, map[string]func(){
		"fencectl":   func() { os.Exit(fencectl.Main(clikit.Env{Args: os.Args})) },
		"regctl":     func() { os.Exit(regctl.Main(clikit.Env{Args: os.Args})) },
		"racer":      part(race),
		"tally":      part(tally),
		"leaderless": part(leaderless),
	})
}

// A program that ends its own main thread has to be on it.
func init() {
	if filepath.Base(os.Args[0]) == "leaderless" {
		runtime.LockOSThread()
	}
}

func part(f func() error) func() {
	return func() {
		if err := f(); err != nil {
			fmt.Fprintln(os.Stderr, os.Args[0]+":", err)
			os.Exit(1)
		}
	}
}
