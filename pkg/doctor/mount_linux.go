package doctor

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"

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
	kind := unknownKind
	eachMount(func(line []byte) bool {
		found, ok := kindIn(line, st.Mnt_id)
		if ok {
			kind = found
		}
		return !ok
	})
	return kind
}

// eachMount reads /proc/self/mountinfo (proc_pid_mountinfo(5)) line by line, until f has seen enough.
func eachMount(f func(line []byte) (more bool)) {
	mounts, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return
	}
	defer mounts.Close()
	lines := bufio.NewScanner(mounts)
	for lines.Scan() && f(lines.Bytes()) {
	}
}

// mountPoints are the paths where filesystems begin, by the kernel's list: none of them is asked.
func mountPoints() map[string]bool {
	points := map[string]bool{}
	eachMount(func(line []byte) bool {
		points[mountPointIn(line)] = true
		return true
	})
	return points
}

// mountPointIn is the fifth word of a line; white space and backslashes in it are written as octal numbers.
func mountPointIn(line []byte) string {
	words := bytes.SplitN(line, []byte(" "), 6)
	if len(words) < 6 {
		return ""
	}
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(string(words[4]))
}

// kindIn finds the filesystem's name in a line: the mount's number is the first
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
