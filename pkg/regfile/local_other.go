//go:build !linux

package regfile

import "golang.org/x/sys/unix"

// IsLocal reports whether the directory is on a filesystem that a single kernel mounts. Anything not known to be is
// taken for shared.
func (d *Dir) IsLocal() bool {
	var st unix.Statfs_t
	if err := Retry(func() error { return unix.Fstatfs(d.fd, &st) }); err != nil {
		return false
	}
	switch unix.ByteSliceToString(st.Fstypename[:]) {
	case "apfs", "hfs", "ufs", "zfs", "tmpfs":
		return true
	}
	return false
}
