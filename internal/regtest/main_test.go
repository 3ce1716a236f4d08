//go:build linux

// Package regtest runs the real regctl around real services, and repairs real state homes: what needs several processes at
// once, a terminal, or a socket that somebody talks to.
package regtest

import (
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"holdfast/internal/clikit"
	"holdfast/internal/cmd/fencectl"
	"holdfast/internal/cmd/leasectl"
	"holdfast/internal/cmd/regctl"
	"holdfast/internal/supervise"
	"holdfast/internal/testkit"
)

// TestMain makes this binary serve as the programs that the scenes start by name.
func TestMain(m *testing.M) {
	supervise.Jump()
	// The race detector makes every process sleep for a second at its end unless it is told not to.
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	testscript.Main(testkit.Wide{M: m}, map[string]func(){
		"leasectl": func() { os.Exit(leasectl.Main(clikit.Env{Args: os.Args})) },
		"fencectl": func() { os.Exit(fencectl.Main(clikit.Env{Args: os.Args})) },
		"regctl":   func() { os.Exit(regctl.Main(clikit.Env{Args: os.Args})) },
		"service": func() {
			if err := service(os.Args[1:]); err != nil {
				fmt.Fprintln(os.Stderr, "service:", err)
				os.Exit(1)
			}
		},
	})
}
