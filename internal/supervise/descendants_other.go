//go:build !linux

package supervise

import "golang.org/x/sys/unix"

// descendants are not found on this system.
func descendants() []int { return nil }

func signalDescendants(unix.Signal) {}
