package doctor

import (
	"bufio"
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// readOnly reports whether a filesystem is mounted read-only.
func readOnly(st *unix.Statfs_t) bool { return st.Flags&unix.ST_RDONLY != 0 }

// kindOf is the name of a directory's filesystem as mount(8) knows it: ext4, nfs4, fuse.sshfs.
func kindOf(fd int) string {
	var st unix.Statx_t
	if unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_MNT_ID, &st) != nil || st.Mask&unix.STATX_MNT_ID == 0 {
		return unknownKind
	}
	mounts, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return unknownKind
	}
	defer mounts.Close()
	lines := bufio.NewScanner(mounts)
	for lines.Scan() {
		if kind, found := kindIn(lines.Bytes(), st.Mnt_id); found {
			return kind
		}
	}
	return unknownKind
}

// kindIn finds the filesystem's name in a line of /proc/<pid>/mountinfo (proc_pid_mountinfo(5)): the mount's number is the first
// word, the name the first one behind " - ".
func kindIn(line []byte, mount uint64) (kind string, found bool) {
	number, rest, _ := bytes.Cut(line, []byte(" "))
	if string(number) != strconv.FormatUint(mount, 10) {
		return "", false
	}
	_, rest, found = bytes.Cut(rest, []byte(" - "))
	name, _, _ := bytes.Cut(rest, []byte(" "))
	return string(name), found && len(name) > 0
}
