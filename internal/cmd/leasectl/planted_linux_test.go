package leasectl_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// heldLease is a lease of another holder that does not end soon.
const heldLease = `{
  "holderId": "aaaaaaaa-0000-4000-8000-000000000001",
  "hostname": "planted",
  "acquiredAt": "2020-01-01T00:00:00.000Z",
  "expiresAt": "2099-01-01T00:00:00.000Z",
  "durationSeconds": 900,
  "token": "aaaaaaaa-0000-4000-8000-00000000000a",
  "fence": 7,
  "label": "the planted one"
}
`

// watches reports whether a process has begun to wait for changes of a directory.
func watches(pid int) bool {
	descriptors, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/fd/*")
	for _, d := range descriptors {
		if target, err := os.Readlink(d); err == nil && target == "anon_inode:inotify" {
			return true
		}
	}
	return false
}

// lastLine is the last line of a text that ends with a newline.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return lines[len(lines)-1]
}

func itoa(n int) string { return strconv.Itoa(n) }
