package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// rawFence makes the system calls of an admission to a closed directory and of its closing, in their order, with contents of
// the same sizes, and decides nothing.
type rawFence struct {
	path    string
	session *raw // the session directory
	beside  *raw // the ticket's
}

var (
	rawClaim  = bytes.Repeat([]byte("x"), 600)
	rawTicket = bytes.Repeat([]byte("x"), 130)
)

func newRawFence(path string) *rawFence {
	must(os.Mkdir(path, 0o700))
	must(os.Mkdir(path+"/session", 0o700))
	must(os.WriteFile(path+"/session/claim", rawClaim, 0o600))
	return &rawFence{path: path}
}

func (r *rawFence) close() {}

func (r *rawFence) pair() {
	r.admit()
	r.markClosed()
	must(os.Remove(r.path + "/ticket"))
}

func (r *rawFence) open(withSession bool) {
	r.beside = openRaw(r.path)
	if withSession {
		r.openSession()
	}
}

// openSession resolves the path and opens the directory, as package fence does.
func (r *rawFence) openSession() {
	_, err := filepath.EvalSymlinks(r.path + "/session")
	must(err)
	r.session = openRaw(r.path + "/session")
}

func openRaw(path string) *raw {
	dir, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(err)
	r := &raw{dir: dir}
	r.fstat(dir)
	return r
}

func (r *rawFence) admit() {
	r.open(true)
	_, err := filepath.EvalSymlinks(r.path)
	must(err)
	fd := r.beside.create("stage", 0o600)
	r.beside.write(fd, rawTicket)
	r.beside.fstat(fd)
	must(unix.Fdatasync(fd))
	must(unix.Renameat2(r.beside.dir, "stage", r.beside.dir, "ticket", unix.RENAME_NOREPLACE))
	unix.Close(fd)
	r.beside.lstat("ticket")
	tx := r.enter()
	r.session.read("claim", len(rawClaim)+1)
	var st unix.Stat_t
	if err := unix.Lstat(r.path+"/session.lock", &st); err != unix.ENOENT {
		must(os.ErrExist)
	}
	r.publish()
	r.beside.replace("ticket", rawTicket)
	r.leave(tx)
}

func (r *rawFence) markClosed() {
	r.open(false)
	r.beside.read("ticket", len(rawTicket)+1)
	r.openSession()
	tx := r.enter()
	r.beside.read("ticket", len(rawTicket)+1)
	r.session.read("claim", len(rawClaim)+1)
	r.session.absent("hold")
	var fs unix.Statfs_t
	must(unix.Fstatfs(r.session.dir, &fs))
	must(unix.Kill(os.Getpid(), 0))
	_, err := os.ReadFile("/proc/" + strconv.Itoa(os.Getpid()) + "/stat")
	must(err)
	r.beside.replace("ticket", rawTicket)
	r.publish()
	r.beside.replace("ticket", rawTicket)
	r.leave(tx)
}

// enter creates the transaction file, as a claim is created, and writes its evidence.
func (r *rawFence) enter() int {
	s := r.session
	fd := s.create("tx", 0o600)
	s.fstat(fd)
	must(unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB))
	s.lstat("tx")
	s.write(fd, rawEvidence)
	return fd
}

func (r *rawFence) leave(fd int) {
	r.session.lstat("tx")
	r.session.lstat("tx")
	must(unix.Unlinkat(r.session.dir, "tx", 0))
	unix.Close(fd)
	r.session.close()
	r.beside.close()
}

func (r *rawFence) publish() {
	r.session.lstat("tx")
	var st unix.Statx_t
	must(unix.Statx(r.session.dir, "claim", unix.AT_SYMLINK_NOFOLLOW, 0, &st))
	r.session.replace("claim", rawClaim)
}

// replace stages, syncs and renames over name, keeping the mode.
func (r *raw) replace(name string, content []byte) {
	fd := r.create("stage", 0o600)
	r.fstat(fd)
	must(unix.Fchmod(fd, 0o600))
	r.write(fd, content)
	r.fstat(fd)
	must(unix.Fdatasync(fd))
	must(unix.Renameat(r.dir, "stage", r.dir, name))
	unix.Close(fd)
}
