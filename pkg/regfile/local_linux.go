package regfile

import "golang.org/x/sys/unix"

// bcachefs and zfs have no constant in x/sys/unix; the values are those of the kernel's and OpenZFS's headers.
const (
	bcachefsMagic = 0xca451a4e
	zfsMagic      = 0x2fc12fc1
)

// IsLocal reports whether the directory is on a filesystem that a single kernel mounts. Anything not known to be is
// taken for shared.
func (d *Dir) IsLocal() bool {
	var st unix.Statfs_t
	if err := Retry(func() error { return unix.Fstatfs(d.fd, &st) }); err != nil {
		return false
	}
	switch uint32(st.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, zfsMagic,
		bcachefsMagic, unix.TMPFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC:
		return true
	}
	return false
}
