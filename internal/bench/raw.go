package main

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// raw makes the system calls of an acquire and a release in their order, with contents of the same sizes, and decides
// nothing. It is what the protocol costs without the program.
type raw struct {
	dir int
}

var (
	rawLease    = bytes.Repeat([]byte("x"), 255)
	rawEvidence = bytes.Repeat([]byte("x"), 250)
	rawLine     = append(bytes.Repeat([]byte("x"), 172), '\n')
)

func newRaw(path string) *raw {
	must(os.Mkdir(path, 0o700))
	dir, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(err)
	must(os.WriteFile(path+"/journal", rawLine, 0o600))
	return &raw{dir}
}

func (r *raw) close() { unix.Close(r.dir) }

func (r *raw) pair() {
	r.acquire()
	r.release()
}

func (r *raw) acquire() {
	r.absent("lock")
	claim := r.enter()
	r.absent("lock")
	r.lstat("journal")
	r.journal(true)
	r.absent("lock")
	fd := r.create("stage", 0o666)
	r.write(fd, rawLease)
	r.fstat(fd)
	must(unix.Fdatasync(fd))
	must(unix.Renameat2(r.dir, "stage", r.dir, "lock", unix.RENAME_NOREPLACE))
	r.fstat(fd)
	unix.Close(fd)
	r.read("lock", len(rawLease)+1)
	r.lstat("claim")
	r.leave(claim)
}

func (r *raw) release() {
	r.read("lock", len(rawLease)+1)
	claim := r.enter()
	r.read("lock", len(rawLease)+1)
	r.lstat("journal")
	var st unix.Statx_t
	must(unix.Statx(r.dir, "lock", unix.AT_SYMLINK_NOFOLLOW, 0, &st))
	r.read("lock", len(rawLease)+1)
	must(unix.Unlinkat(r.dir, "lock", 0))
	r.absent("lock")
	r.lstat("claim")
	r.journal(false)
	r.leave(claim)
}

func (r *raw) enter() int {
	fd := r.create("claim", 0o600)
	r.fstat(fd)
	must(unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB))
	r.lstat("claim")
	r.write(fd, rawEvidence)
	_ = unix.Unlinkat(r.dir, "stage", 0)
	return fd
}

func (r *raw) leave(fd int) {
	r.lstat("claim")
	must(unix.Unlinkat(r.dir, "claim", 0))
	unix.Close(fd)
}

// journal appends a line as the program does when it wrote the last one too: that is looked at first, the new one is read
// back, and what the file is then is kept.
func (r *raw) journal(sync bool) {
	r.lstat("journal")
	fd := r.open("journal", unix.O_RDWR|unix.O_APPEND)
	var st unix.Stat_t
	must(unix.Fstat(fd, &st))
	r.pread(fd, len(rawLine), st.Size-int64(len(rawLine)))
	r.write(fd, rawLine)
	r.pread(fd, len(rawLine), st.Size)
	if sync {
		must(unix.Fdatasync(fd))
	}
	r.fstat(fd)
	unix.Close(fd)
}

func (r *raw) absent(name string) {
	if _, err := unix.Openat(r.dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err != unix.ENOENT {
		must(os.ErrExist)
	}
}

func (r *raw) create(name string, mode uint32) int {
	fd, err := unix.Openat(r.dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
	must(err)
	return fd
}

// open goes through a handle and /proc, as package regfile does.
func (r *raw) open(name string, access int) int {
	handle, err := unix.Openat(r.dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	must(err)
	r.fstat(handle)
	fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(handle), access|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	must(err)
	r.fstat(fd)
	unix.Close(handle)
	return fd
}

func (r *raw) read(name string, size int) {
	fd := r.open(name, unix.O_RDONLY)
	r.pread(fd, size, 0)
	r.fstat(fd)
	unix.Close(fd)
}

func (r *raw) pread(fd, size int, offset int64) {
	_, err := unix.Pread(fd, make([]byte, size), offset)
	must(err)
}

func (r *raw) write(fd int, b []byte) {
	_, err := unix.Write(fd, b)
	must(err)
}

func (r *raw) fstat(fd int) {
	var st unix.Stat_t
	must(unix.Fstat(fd, &st))
}

func (r *raw) lstat(name string) {
	var st unix.Stat_t
	must(unix.Fstatat(r.dir, name, &st, unix.AT_SYMLINK_NOFOLLOW))
}
