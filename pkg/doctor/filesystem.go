package doctor

import (
	"fmt"

	"golang.org/x/sys/unix"

	"holdfast/pkg/finding"
	"holdfast/pkg/regfile"
)

// The least that a filesystem should have left.
const (
	leastSpace  = 16 << 20 // bytes
	leastInodes = 64
)

// filesystem says what holds on the filesystem of a directory.
func filesystem(x *examination, root string) []finding.Finding {
	x.touch(root)
	d, err := regfile.OpenDir(root)
	if err != nil {
		return []finding.Finding{{Severity: finding.Fail, Condition: finding.CodeOf(err), Path: root, Subject: root, Detail: err.Error()}}
	}
	defer d.Close()
	var st unix.Statfs_t
	if err := regfile.Retry(func() error { return unix.Fstatfs(d.FD(), &st) }); err != nil {
		return []finding.Finding{{Severity: finding.Fail, Condition: "io", Path: root, Subject: root, Detail: regfile.Errno(err)}}
	}
	var found []finding.Finding
	warn := func(condition, format string, args ...any) {
		found = append(found, finding.Finding{Severity: finding.Warn, Condition: condition, Path: root, Subject: root, Detail: fmt.Sprintf(format, args...)})
	}
	space := uint64(st.Bavail) * uint64(st.Bsize)
	if !d.IsLocal() {
		warn("shared-filesystem", "other machines may mount it: locks and process ids of theirs mean nothing here, and clocks may disagree; take leases over with --observe")
	}
	if readOnly(d.FD()) {
		warn("read-only", "nothing can be written: state can be looked at, and not changed")
	}
	if space < leastSpace {
		warn("no-space", "%d bytes are left", space)
	}
	if st.Files > 0 && st.Ffree < leastInodes {
		warn("no-inodes", "%d inodes are left", st.Ffree)
	}
	if len(found) == 0 {
		found = append(found, finding.Finding{Severity: finding.Pass, Condition: "local", Path: root, Subject: root, Detail: fmt.Sprintf("one kernel mounts it, %d MiB are left", space>>20)})
	}
	return found
}
