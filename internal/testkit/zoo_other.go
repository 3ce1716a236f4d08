//go:build !linux

package testkit

import (
	"errors"
	"os"
)

func kernelLease(*os.File) error { return errors.ErrUnsupported }
