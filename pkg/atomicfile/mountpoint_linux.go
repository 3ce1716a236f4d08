package atomicfile

import (
	"golang.org/x/sys/unix"

	"holdfast/pkg/regfile"
)

// CheckReplaceable refuses a target that is itself a mount point (regfile.CodeMountPoint), before anything is written.
// A kernel that cannot tell lets it pass; the rename then fails and says so.
func CheckReplaceable(d *regfile.Dir, target string) error {
	var st unix.Statx_t
	err := regfile.Retry(func() error {
		return unix.Statx(d.FD(), target, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, 0, &st)
	})
	if err == nil && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return &regfile.Error{Code: regfile.CodeMountPoint, Path: d.Join(target), Kind: regfile.Regular}
	}
	return nil
}
