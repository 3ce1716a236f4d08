package testkit

import (
	"os"
	"testing"
)

// MemDir is a temporary directory in memory where there is such a thing, for tests that change files thousands of times:
// a filesystem on a disk may write data out at every rename. Elsewhere it is t.TempDir.
func MemDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "holdfast-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
