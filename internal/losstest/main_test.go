//go:build linux

// Package losstest runs the real leasectl over leases that are lost in every way, with real commands below it, and shows
// by the time stamps which those write all the time that nothing of them runs when the lease is over.
package losstest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

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

// TestThreadsOfOtherTestsEnd: a scene's wrapper lives on when threads end on which other tests had become locked. Whether one
// of them is the thread that started the wrapper is luck, hence the scenes.
func TestThreadsOfOtherTestsEnd(t *testing.T) {
	t.Parallel()
	for range 20 {
		t.Run("", func(t *testing.T) {
			s := newScene(t)
			end := filepath.Join(s.evidence, "end")
			s.run("sh", "-c", `stamp child & until test -e "$0"; do sleep 0.05; done; kill $!; wait; exit 7`, end)
			endThreads(50)
			s.must(os.WriteFile(end, nil, 0o666))
			s.unharmed(7)
		})
	}
}

// endThreads ends so many threads.
func endThreads(n int) {
	var ending sync.WaitGroup
	for range n {
		ending.Go(func() {
			runtime.LockOSThread()
			_ = unix.Nanosleep(&unix.Timespec{Nsec: 1e7}, nil) // so that each needs one of its own
		})
	}
	ending.Wait()
}
