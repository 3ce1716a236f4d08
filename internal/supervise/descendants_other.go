//go:build !linux

package supervise

import "golang.org/x/sys/unix"

// descendants are not found on this system.
func descendants() []int { return nil }

func signalDescendants(unix.Signal) int { return 0 }

func signalChildren(unix.Signal) int { return 0 }

// isStopped goes by what wait4 said.
func (c *Child) isStopped() bool { return true }
