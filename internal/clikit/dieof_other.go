//go:build !linux

package clikit

import (
	"os"
	"os/signal"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// dieOf ends this process by the signal that has ended its command or its wait, so that a shell sees the same. Here it does so
// for the signals that the Go runtime itself hands on, which leave no core; for others it returns.
func dieOf(sig unix.Signal) {
	if !slices.Contains([]unix.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP}, sig) {
		return
	}
	signal.Reset(sig)
	if unix.Kill(os.Getpid(), sig) == nil {
		time.Sleep(time.Second)
	}
}

// defaultAction cannot go past the Go runtime here.
func defaultAction(unix.Signal) bool { return false }
