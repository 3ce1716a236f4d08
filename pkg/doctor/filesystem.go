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

// unknownKind is the name of a filesystem that the kernel does not tell.
const unknownKind = "an unknown filesystem"

// filesystem says what holds on the filesystem of a directory.
func filesystem(x *examination, root string) []finding.Finding {
	if !x.touch(root) {
		return nil
	}
	d, err := regfile.OpenDir(root)
	if err != nil {
		return []finding.Finding{{Severity: finding.Fail, Condition: finding.CodeOf(err), Path: root, Subject: root, Detail: err.Error()}}
	}
	defer d.Close()
	var st unix.Statfs_t
	if err := regfile.Retry(func() error { return unix.Fstatfs(d.FD(), &st) }); err != nil {
		return []finding.Finding{{Severity: finding.Fail, Condition: "io", Path: root, Subject: root, Detail: regfile.Errno(err)}}
	}
	space := uint64(st.Bavail) * uint64(st.Bsize)
	var found []finding.Finding
	kind := kindOf(d.FD())
	if d.IsLocal() {
		found = append(found, finding.Finding{Severity: finding.Pass, Condition: "local", Path: root, Subject: root, Detail: fmt.Sprintf("%s: one kernel mounts it; %s; %s", kind, holds(kind), left(space, st.Files, uint64(st.Ffree)))})
	}
	warn := func(condition, format string, args ...any) {
		found = append(found, finding.Finding{Severity: finding.Warn, Condition: condition, Path: root, Subject: root, Detail: fmt.Sprintf(format, args...)})
	}
	if !d.IsLocal() {
		warn("shared-filesystem", "%s: other machines may mount it: locks and process ids of theirs mean nothing here, and clocks may disagree; take leases over with --observe; %s; %s", kind, holds(kind), left(space, st.Files, uint64(st.Ffree)))
	}
	if readOnly(&st) {
		warn("read-only", "nothing can be written: state can be looked at, and not changed")
	}
	if space < leastSpace {
		warn("no-space", "%d bytes are left", space)
	}
	if st.Files > 0 && st.Ffree < leastInodes {
		warn("no-inodes", "%d inodes are left", st.Ffree)
	}
	return found
}

// holds says what the protocols may build on, on a filesystem of a kind. Nothing is tried, for that would write: it is what the
// kernel's code of these kinds does. zfs renames without replacing only in its newer versions.
func holds(kind string) string {
	switch kind {
	case "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "bcachefs", "tmpfs", "overlay":
		return "hard links, renames that replace nothing, and flock hold"
	case "zfs":
		return "hard links and flock hold, renames that replace nothing may"
	}
	return "whether hard links, flock, and renames that replace nothing work is not known"
}

// left says how much can still be stored. A filesystem without a table of inodes reports none.
func left(space, inodes, free uint64) string {
	if inodes == 0 {
		return fmt.Sprintf("%d MiB are left", space>>20)
	}
	return fmt.Sprintf("%d MiB and %d inodes are left", space>>20, free)
}
