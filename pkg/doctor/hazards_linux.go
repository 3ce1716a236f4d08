package doctor

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"holdfast/pkg/regfile"
)

// file judges the attributes of what is neither a directory nor a link.
func (v *visit) file(name []byte) {
	const hole = 1 << 20 // a difference that is no rounding
	st := &v.statx
	if st.Mode&unix.S_IFMT == unix.S_IFREG {
		size, stored := int64(st.Size), int64(st.Blocks)*512
		if size >= v.opts.Huge {
			v.hazard("huge", name, "%d bytes", size)
		}
		if size-stored > hole {
			v.hazard("sparse", name, "%d bytes, of which %d are on the disk", size, stored)
		}
		if st.Nlink > 1 {
			v.hazard("hard-linked", name, "%d names", st.Nlink)
		}
	}
	if st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 {
		v.hazard("setuid", name, "mode %04o", st.Mode&0o7777)
	}
	v.access(name)
	v.mountPoint(name)
}

// access judges who may write to a file or a directory, and whose it is.
func (v *visit) access(name []byte) {
	st := &v.statx
	sticky := st.Mode&unix.S_IFMT == unix.S_IFDIR && st.Mode&unix.S_ISVTX != 0
	if st.Mode&unix.S_IWOTH != 0 && !sticky {
		v.hazard("world-writable", name, "mode %04o", st.Mode&0o7777)
	}
	if st.Uid != v.job.root.uid {
		v.hazard("foreign-owner", name, "uid %d, and the tree is of uid %d", st.Uid, v.job.root.uid)
	}
}

// mountPoint says, and reports, whether another filesystem begins there.
func (v *visit) mountPoint(name []byte) bool {
	const root = unix.STATX_ATTR_MOUNT_ROOT
	if v.statx.Attributes_mask&root == 0 || v.statx.Attributes&root == 0 {
		return false
	}
	v.hazard("mount-point", name, "another filesystem begins here")
	return true
}

// link tells where a link leads. What is there is taken as a bare handle, and not opened. When that hangs, it says nothing about
// the directory that the link is in.
func (v *visit) link() {
	v.begin()
	text, err := os.Readlink(v.job.path)
	v.back()
	if err != nil {
		v.unseen(nil, bare(err))
		return
	}
	v.leads = Leads(v.job.path, text)
	if v.guard.HopelessLink(v.job.path, v.leads) {
		v.hazard(Unresponsive, nil, "where it leads was not looked at: that has not answered before")
		return
	}
	v.begin()
	real, err := leadsTo(v.job.path)
	v.back()
	root := v.job.root.path
	switch {
	case err == nil && real != root && !strings.HasPrefix(real, strings.TrimSuffix(root, "/")+"/"):
		v.hazard("symlink-escapes-root", nil, "it leads to %s", regfile.Printable(real))
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		v.hazard("dangling", nil, "it leads nowhere")
	case errors.Is(err, unix.ELOOP):
		v.hazard("symlink-loop", nil, "it leads to itself")
	case err != nil:
		v.hazard("unreadable", nil, "where it leads may not be seen: %s", regfile.Errno(err))
	}
}

// leadsTo is the physical path of what a link leads to.
func leadsTo(path string) (string, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	return os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
}

// name judges the name of an entry.
func (v *visit) name(name []byte, cases *caseSet) {
	plain, upper := true, false
	for _, c := range name {
		plain = plain && c >= ' ' && c < 0x7f
		upper = upper || c >= 'A' && c <= 'Z'
	}
	if !plain {
		if !utf8.Valid(name) {
			v.hazard("name-not-utf8", name, "its name is not UTF-8")
		}
		if bytes.ContainsFunc(name, unicode.IsControl) {
			v.hazard("name-control-characters", name, "its name has control characters")
		}
	}
	if cases.add(name, upper || !plain) { // what is not plain may have a case all the same
		v.hazard("case-collision", name, "another name beside it differs from it only in case")
	}
}
