package testkit

import (
	"bytes"
	"os"
	"strconv"
	"testing"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"
)

// Mark is an environment variable that every process which a test starts inherits, into whatever session, process group or
// pid namespace it goes and whoever its parent becomes.
type Mark string

// NewMark makes a mark. What still carries it at the end of the test is killed.
func NewMark(t testing.TB) Mark {
	m := Mark("HOLDFAST_MARK=" + uuid.NewString())
	t.Cleanup(func() {
		for _, pid := range m.Processes() {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	})
	return m
}

// Processes are those that carry the mark now. A zombie has no environment any more, so it does not count.
func (m Mark) Processes() (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		environment, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err == nil && bytes.Contains(environment, []byte(m)) {
			pids = append(pids, pid)
		}
	}
	return pids
}
