package doctor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"holdfast/pkg/regfile"
)

// visit does jobs for one thread. Its buffer is used again.
type visit struct {
	*scanner
	walker
	job     job
	reading *reading // what is read now
	leads   string   // where the job's link leads, once that is known
	asked   []byte   // the name of the entry in there that is asked for its attributes now
	seen    int64    // entries
	hazards []Hazard
	below   []job
	buffer  []byte
	statx   unix.Statx_t
}

func newVisit(s *scanner) *visit {
	return &visit{scanner: s, buffer: make([]byte, 64<<10)}
}

// back is called after whatever may hang. A thread that was given up meanwhile ends here: what it had is another's now.
func (v *visit) back() {
	if !v.end() {
		runtime.Goexit()
	}
}

// hazard notes one of the job's directory or link, or with a name of an entry in that directory.
func (v *visit) hazard(condition string, name []byte, format string, args ...any) {
	if v.wanted[condition] {
		v.hazards = append(v.hazards, Hazard{condition, v.path(name), fmt.Sprintf(format, args...)})
	}
}

// path is that of an entry of the job's directory; without a name the directory's own.
func (v *visit) path(name []byte) string {
	switch {
	case name == nil:
		return v.job.path
	case strings.HasSuffix(v.job.path, "/"):
		return v.job.path + string(name)
	}
	return v.job.path + "/" + string(name)
}

// tell gives away what was found so far.
func (v *visit) tell() {
	v.entries.Add(v.seen)
	v.seen = 0
	if len(v.hazards) > 0 {
		v.found <- v.hazards
		v.hazards = nil
	}
}

// do does a job.
func (v *visit) do(j job) {
	v.job, v.leads, v.reading = j, "", nil
	switch {
	case v.guard.hangs.hopeless(j.path):
		v.hazard(Unresponsive, nil, "%s", Lost{Path: j.path}.Detail())
	case j.link:
		v.link()
	case j.rest != nil:
		v.read(j.rest)
	case j.depth == 0 || v.enters():
		v.openAndRead()
	}
	v.tell()
	v.add(v.below)
	v.below = v.below[:0]
}

// takeOver is called by another thread when this one was given up. It says where it hangs, and puts back on the stack what it had.
func (v *visit) takeOver() []Hazard {
	v.entries.Add(v.seen)
	switch {
	case v.leads != "":
		v.guard.notedLink(v.job.path, v.leads)
		v.hazard(Unresponsive, nil, "where it leads does not answer")
	case v.asked == nil:
		v.hazards = append(v.hazards, unresponsive(*v.guard.noted(v.job.path)))
	default:
		v.hazards = append(v.hazards, unresponsive(*v.guard.noted(v.path(v.asked))))
		if v.guard.hangs.hopeless(v.job.path) {
			v.hazard(Unresponsive, nil, "the rest of it was not looked at: it does not answer, or things in it do not")
		} else {
			v.below = append([]job{v.job.later(v.reading)}, v.below...)
		}
	}
	v.add(v.below)
	return v.hazards
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

// enters looks at a directory from outside, and reports whether to go into it.
func (v *visit) enters() bool {
	j := v.job
	if err := v.stat(unix.AT_FDCWD, append([]byte(j.path), 0)); err != nil {
		v.unseen(nil, err)
		return false
	}
	v.access(nil)
	mount := v.mountPoint(nil)
	switch {
	case v.opts.MaxDepth > 0 && j.depth >= v.opts.MaxDepth:
		return false
	case v.opts.OneFileSystem:
		return !mount && unix.Mkdev(v.statx.Dev_major, v.statx.Dev_minor) == j.root.dev
	}
	return true
}

// unseen says what could not be looked at; what has gone meanwhile is none of it.
func (v *visit) unseen(name []byte, err error) {
	if !errors.Is(err, unix.ENOENT) {
		v.hazard("unreadable", name, "%s", regfile.Errno(err))
	}
}

func (v *visit) openAndRead() {
	j := v.job
	flags := unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NONBLOCK | unix.O_CLOEXEC
	if j.depth > 0 { // a root may be a link
		flags |= unix.O_NOFOLLOW
	}
	v.begin()
	fd, err := unix.Open(j.path, flags, 0)
	v.back()
	if err != nil {
		v.unseen(nil, err)
		return
	}
	v.directories.Add(1)
	if j.depth == 0 && v.stat(fd, []byte{0}) == nil {
		v.access(nil)
	}
	v.read(&reading{fd: fd})
}

// pause is how many jobs a directory gives before its rest waits until they are done: so many of each directory on the way are
// kept, however many it has.
const pause = 512

// read looks at every entry of a directory that was not looked at yet.
func (v *visit) read(r *reading) {
	for {
		v.reading = r
		v.entriesOf(r)
		v.reading = nil
		if len(v.below) >= pause {
			v.below = append([]job{v.job.later(r)}, v.below...)
			return
		}
		v.tell()
		v.begin()
		n, err := unix.Getdents(r.fd, v.buffer)
		v.back()
		if err != nil {
			v.unseen(nil, err)
		}
		if err != nil || n <= 0 {
			unix.Close(r.fd)
			return
		}
		r.list = v.buffer[:n]
	}
}

// entriesOf looks at the entries of a list as getdents64(2) gives it.
func (v *visit) entriesOf(r *reading) {
	const kindAt, nameAt = 18, 19 // after inode, offset and length
	for len(r.list) > 0 {
		size := int(binary.NativeEndian.Uint16(r.list[16:]))
		kind, field := r.list[kindAt], r.list[nameAt:size]
		r.list = r.list[size:]
		name := field[:max(bytes.IndexByte(field, 0), 0)]
		if string(name) == "." || string(name) == ".." {
			continue
		}
		v.seen++
		v.name(name, &r.cases)
		v.entry(r, name, field, kind)
	}
}

// entry looks at one entry. Directories and links are jobs of their own, since another filesystem may begin there. terminated is
// the name with a NUL after it, kind what the list says of it.
func (v *visit) entry(r *reading, name, terminated []byte, kind byte) {
	mode := uint32(kind) << 12
	asked := kind == unix.DT_UNKNOWN || v.attributes && kind != unix.DT_DIR && kind != unix.DT_LNK
	if asked {
		v.asked = name
		err := v.stat(r.fd, terminated)
		v.asked = nil
		if asked = err == nil; asked {
			mode = uint32(v.statx.Mode) & unix.S_IFMT
		} else {
			v.unseen(name, err) // the list says what it is, all the same
		}
	}
	switch mode {
	case unix.S_IFDIR, unix.S_IFLNK:
		v.below = append(v.below, job{path: v.path(name), depth: v.job.depth + 1, root: v.job.root, link: mode == unix.S_IFLNK})
		return
	case unix.S_IFIFO:
		v.hazard("fifo", name, "a named pipe: opening it may wait for ever")
	case unix.S_IFSOCK:
		v.hazard("socket", name, "a socket: it cannot be opened")
	case unix.S_IFCHR, unix.S_IFBLK:
		v.hazard("device", name, "a device: opening it acts")
	}
	if asked {
		v.file(name)
	}
}

// stat asks for the attributes of a name with a NUL after it, of the directory itself when it is empty, as the kernel gives it: package unix would make a copy of every one.
func (v *visit) stat(dirfd int, terminated []byte) error {
	const flags = unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT | unix.AT_STATX_DONT_SYNC | unix.AT_EMPTY_PATH
	const mask = unix.STATX_TYPE | unix.STATX_MODE | unix.STATX_NLINK | unix.STATX_UID | unix.STATX_SIZE | unix.STATX_BLOCKS
	v.begin()
	_, _, errno := unix.Syscall6(unix.SYS_STATX, uintptr(dirfd), uintptr(unsafe.Pointer(&terminated[0])), flags, mask, uintptr(unsafe.Pointer(&v.statx)), 0)
	v.back()
	if errno != 0 {
		return errno
	}
	return nil
}
