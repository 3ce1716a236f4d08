//go:build !linux

package offload

import "syscall"

func dieWithParent() *syscall.SysProcAttr { return nil }
