package fence

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"holdfast/pkg/regfile"
)

// openers lists the pids that have a hold file open with a lock on it, as far as /proc shows them. It looks at names and
// lock lists only: the files of strangers may lie on a disk that does not answer.
func openers(hold regfile.Stamp) []int {
	var pids []int
	names, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range names {
		target, err := os.Readlink(fd)
		if err != nil || filepath.Base(strings.TrimSuffix(target, " (deleted)")) != HoldName {
			continue
		}
		process := filepath.Dir(filepath.Dir(fd))
		info, err := os.ReadFile(filepath.Join(process, "fdinfo", filepath.Base(fd)))
		if err != nil || !hasLock(string(info), hold.Ino) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(process)); err == nil && !slices.Contains(pids, pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// hasLock reports whether an fdinfo lists a flock of that inode.
func hasLock(info string, ino uint64) bool {
	for line := range strings.Lines(info) {
		if strings.HasPrefix(line, "lock:") && (strings.Contains(line, " FLOCK ") || strings.Contains(line, " OFDLCK ")) && strings.Contains(line, fmt.Sprintf(":%d ", ino)) {
			return true
		}
	}
	return false
}
