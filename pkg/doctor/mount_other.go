//go:build !linux

package doctor

import "golang.org/x/sys/unix"

// readOnly reports whether a filesystem is mounted read-only.
func readOnly(st *unix.Statfs_t) bool { return uint64(st.Flags)&uint64(unix.MNT_RDONLY) != 0 }

// kindOf is the name of a directory's filesystem: apfs, zfs, ufs.
func kindOf(fd int) string {
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil {
		return unknownKind
	}
	return unix.ByteSliceToString(st.Fstypename[:])
}

// mountPoints are not known here.
func mountPoints() map[string]bool { return nil }
