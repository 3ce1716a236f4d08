package doctor

import "golang.org/x/sys/unix"

// readOnly reports whether a directory's filesystem is mounted read-only.
func readOnly(fd int) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(fd, &st) == nil && st.Flags&unix.ST_RDONLY != 0
}
