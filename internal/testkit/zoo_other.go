//go:build !linux

package testkit

import (
	"errors"
	"os"
)

// KernelLease is for Linux.
func KernelLease(*os.File) error { return errors.ErrUnsupported }
