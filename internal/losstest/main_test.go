//go:build linux

// Package losstest runs the real leasectl over leases that are lost in every way, with real commands below it, and shows
// by the time stamps which those write all the time that nothing of them runs when the lease is over.
package losstest

import (
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"holdfast/internal/clikit"
	"holdfast/internal/cmd/leasectl"
	"holdfast/internal/testkit"
	"holdfast/internal/testkit/hangfs"
)

// TestMain makes this binary serve as the programs that the scenes start by name.
func TestMain(m *testing.M) {
	// The race detector makes every process sleep for a second at its end unless it is told not to.
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	testscript.Main(testkit.Wide{M: m}, map[string]func(){
		"leasectl":     func() { os.Exit(leasectl.Main(clikit.Env{Args: os.Args})) },
		"stamp":        part(stamp),
		"holdclaim":    part(holdClaim),
		hangfs.Program: part(hangfs.Serve),
	})
}

func part(f func() error) func() {
	return func() {
		if err := f(); err != nil {
			fmt.Fprintln(os.Stderr, os.Args[0]+":", err)
			os.Exit(1)
		}
	}
}
