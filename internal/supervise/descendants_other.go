//go:build !linux

package supervise

import "golang.org/x/sys/unix"

// strangers are not told from descendants on this system: neither are found.
type strangers map[int]string

func noteStrangers() strangers { return nil }

func (strangers) descendants() []int { return nil }

func (strangers) signalDescendants(unix.Signal) int { return 0 }

func (strangers) signalChildren(unix.Signal) int { return 0 }

// isStopped goes by what wait4 said.
func (c *Child) isStopped() bool { return true }
