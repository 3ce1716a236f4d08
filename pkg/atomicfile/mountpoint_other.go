//go:build !linux

package atomicfile

import "holdfast/pkg/regfile"

// CheckReplaceable cannot tell here whether target is a mount point: files are not mounted on files.
func CheckReplaceable(*regfile.Dir, string) error { return nil }
