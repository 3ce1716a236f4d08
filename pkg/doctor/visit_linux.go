package doctor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
	"unsafe"

	"golang.org/x/sys/unix"

	"holdfast/pkg/regfile"
)

// visit looks at directories for one thread. Its buffers are used again.
type visit struct {
	*scanner
	t       *thread
	hazards []Hazard
	buffer  []byte
	statx   unix.Statx_t

	terminated []byte // the name of the entry that is looked at, with a NUL after it
}

func newVisit(s *scanner, t *thread) *visit {
	return &visit{scanner: s, t: t, buffer: make([]byte, 64<<10)}
}

func (v *visit) add(condition, path, format string, args ...any) {
	v.hazards = append(v.hazards, Hazard{condition, path, fmt.Sprintf(format, args...)})
}

// openRoot resolves a root, and says why it cannot be scanned.
func openRoot(path string) (*scanRoot, *Hazard) {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	var st unix.Stat_t
	if err == nil {
		err = unix.Stat(path, &st) // the directories above it may be closed to us
	}
	switch {
	case err != nil:
		return nil, &Hazard{"unreadable", path, regfile.Errno(bare(err))}
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return nil, &Hazard{"unreadable", path, "is no directory"}
	}
	return &scanRoot{path: real, dev: uint64(st.Dev), uid: st.Uid}, nil
}

// bare is the errno in an error of package os or path/filepath.
func bare(err error) error {
	var no unix.Errno
	if errors.As(err, &no) {
		return no
	}
	return err
}

// directory looks at every entry of a directory, and returns the directories among them.
func (v *visit) directory(j job) (below []job) {
	v.t.touch(j.path)
	fd, err := unix.Open(j.path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOTDIR) && j.depth == 0 { // a root may be a link
		fd, err = unix.Open(j.path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		if !errors.Is(err, unix.ENOENT) {
			v.add("unreadable", j.path, "%s", regfile.Errno(err))
		}
		return nil
	}
	defer unix.Close(fd)
	v.directories.Add(1)
	cases := caseSet{}
	seen := int64(0)
	defer func() { v.entries.Add(seen) }()
	for {
		v.t.touch(j.path)
		n, err := unix.Getdents(fd, v.buffer)
		if err != nil {
			v.add("unreadable", j.path, "%s", regfile.Errno(err))
			return below
		}
		if n <= 0 {
			return below
		}
		for rest := v.buffer[:n]; len(rest) > 0; {
			const nameAt = 19 // after ino, off, reclen and type
			size := int(binary.NativeEndian.Uint16(rest[16:]))
			field, kind := rest[nameAt:size], rest[18]
			rest = rest[size:]
			name := string(field[:max(bytes.IndexByte(field, 0), 0)])
			if name == "." || name == ".." {
				continue
			}
			seen++
			v.terminated = field
			if v.entry(j, fd, name, kind, &cases) {
				below = append(below, job{path: joined(j.path, name), depth: j.depth + 1, root: j.root})
			}
		}
	}
}

func joined(dir, name string) string {
	if strings.HasSuffix(dir, "/") {
		return dir + name
	}
	return dir + "/" + name
}

// entry looks at one entry, and reports whether it is a directory to go into.
func (v *visit) entry(j job, fd int, name string, kind byte, cases *caseSet) bool {
	v.name(j, name, cases)
	const mask = unix.STATX_TYPE | unix.STATX_MODE | unix.STATX_NLINK | unix.STATX_UID | unix.STATX_SIZE | unix.STATX_BLOCKS
	if kind == unix.DT_DIR || kind == unix.DT_UNKNOWN {
		v.t.touch(joined(j.path, name)) // another filesystem may begin here
	}
	err := v.stat(fd, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT|unix.AT_STATX_DONT_SYNC, mask)
	if err != nil {
		if !errors.Is(err, unix.ENOENT) {
			v.add("unreadable", joined(j.path, name), "%s", regfile.Errno(err))
		}
		return false
	}
	st := &v.statx
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFIFO:
		v.add("fifo", joined(j.path, name), "a named pipe: opening it may wait for ever")
	case unix.S_IFSOCK:
		v.add("socket", joined(j.path, name), "a socket: it cannot be opened")
	case unix.S_IFCHR, unix.S_IFBLK:
		v.add("device", joined(j.path, name), "a device: opening it acts")
	case unix.S_IFLNK:
		v.link(j, fd, name)
	case unix.S_IFREG:
		v.regular(j, name, st)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFLNK {
		v.access(j, name, st)
	}
	return v.enters(j, name, st)
}

// stat is statx of the name as the kernel gave it: package unix would make a copy of every one.
func (v *visit) stat(dirfd, flags, mask int) error {
	_, _, errno := unix.Syscall6(unix.SYS_STATX, uintptr(dirfd), uintptr(unsafe.Pointer(&v.terminated[0])), uintptr(flags), uintptr(mask), uintptr(unsafe.Pointer(&v.statx)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func (v *visit) enters(j job, name string, st *unix.Statx_t) bool {
	mount := st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
	if mount {
		v.add("mount-point", joined(j.path, name), "another filesystem begins here")
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || v.opts.MaxDepth > 0 && j.depth+1 >= v.opts.MaxDepth {
		return false
	}
	other := unix.Mkdev(st.Dev_major, st.Dev_minor) != j.root.dev
	return !(v.opts.OneFileSystem && (mount || other))
}

func (v *visit) regular(j job, name string, st *unix.Statx_t) {
	const hole = 1 << 20 // a difference that is no rounding
	if int64(st.Size) >= v.opts.Huge {
		v.add("huge", joined(j.path, name), "%d bytes", st.Size)
	}
	if int64(st.Size)-int64(st.Blocks)*512 > hole {
		v.add("sparse", joined(j.path, name), "%d bytes, of which %d are on the disk", st.Size, st.Blocks*512)
	}
	if st.Nlink > 1 {
		v.add("hard-linked", joined(j.path, name), "%d names", st.Nlink)
	}
}

func (v *visit) access(j job, name string, st *unix.Statx_t) {
	mode := uint32(st.Mode)
	directory := mode&unix.S_IFMT == unix.S_IFDIR
	if mode&(unix.S_ISUID|unix.S_ISGID) != 0 && !directory {
		v.add("setuid", joined(j.path, name), "mode %04o", mode&0o7777)
	}
	if mode&unix.S_IWOTH != 0 && !(directory && mode&unix.S_ISVTX != 0) {
		v.add("world-writable", joined(j.path, name), "mode %04o", mode&0o7777)
	}
	if st.Uid != j.root.uid {
		v.add("foreign-owner", joined(j.path, name), "uid %d, and the tree is of uid %d", st.Uid, j.root.uid)
	}
}

// link tells where a link leads. What is there is taken as a bare handle, and not opened.
func (v *visit) link(j job, fd int, name string) {
	path := joined(j.path, name)
	v.t.touch(path)
	real, err := leadsTo(fd, name)
	switch {
	case err == nil && real != j.root.path && !strings.HasPrefix(real, strings.TrimSuffix(j.root.path, "/")+"/"):
		v.add("symlink-escapes-root", path, "it leads to %s", regfile.Printable(real))
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		v.add("dangling", path, "it leads nowhere")
	case errors.Is(err, unix.ELOOP):
		v.add("symlink-loop", path, "it leads to itself")
	}
}

// leadsTo is the physical path of what a link leads to.
func leadsTo(dirfd int, name string) (string, error) {
	fd, err := unix.Openat(dirfd, name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	return os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
}

func (v *visit) name(j job, name string, cases *caseSet) {
	plain, upper := true, false
	for i := 0; i < len(name); i++ {
		c := name[i]
		plain = plain && c >= ' ' && c < 0x7f
		upper = upper || c >= 'A' && c <= 'Z'
	}
	if !plain {
		v.unusual(j, name)
		upper = true // it may have a case all the same
	}
	if cases.add(name, upper) {
		v.add("case-collision", joined(j.path, name), "another name beside it differs from it only in case")
	}
}

func (v *visit) unusual(j job, name string) {
	if !utf8.ValidString(name) {
		v.add("name-not-utf8", joined(j.path, name), "its name is not UTF-8")
	}
	if strings.ContainsFunc(name, unicode.IsControl) {
		v.add("name-control-characters", joined(j.path, name), "its name has control characters")
	}
}
