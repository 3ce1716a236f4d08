package regfile

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Stamp is a file's metadata at one moment.
type Stamp struct {
	Kind  Kind
	Dev   uint64
	Ino   uint64
	Size  int64 // bytes
	Mode  uint32
	UID   uint32
	GID   uint32
	Nlink uint64
	Mtime time.Time
	Ctime time.Time
}

// Perm returns the permission bits, set-id and sticky bits included.
func (s Stamp) Perm() uint32 { return s.Mode & 0o7777 }

// SameFile reports whether both stamps name one inode.
func (s Stamp) SameFile(t Stamp) bool { return s.Dev == t.Dev && s.Ino == t.Ino }

// sameContent is the test for a stable read. It leaves ctime out: replacing a file changes the old inode's.
func (s Stamp) sameContent(t Stamp) bool {
	return s.SameFile(t) && s.Size == t.Size && s.Mtime.Equal(t.Mtime)
}

// Fingerprint identifies a file that is too large to hash, as "stat:<device>-<inode>-<size>-<mtime in ns>".
func (s Stamp) Fingerprint() string {
	return fmt.Sprintf("stat:%d-%d-%d-%d", s.Dev, s.Ino, s.Size, s.Mtime.UnixNano())
}

func stampOf(st *unix.Stat_t) Stamp {
	return Stamp{
		Kind:  kindOf(uint32(st.Mode)),
		Dev:   uint64(st.Dev),
		Ino:   uint64(st.Ino),
		Size:  st.Size,
		Mode:  uint32(st.Mode),
		UID:   st.Uid,
		GID:   st.Gid,
		Nlink: uint64(st.Nlink),
		Mtime: time.Unix(int64(st.Mtim.Sec), int64(st.Mtim.Nsec)).UTC(),
		Ctime: time.Unix(int64(st.Ctim.Sec), int64(st.Ctim.Nsec)).UTC(),
	}
}

func fstat(fd int) (Stamp, error) {
	var st unix.Stat_t
	err := Retry(func() error { return unix.Fstat(fd, &st) })
	return stampOf(&st), err
}

func lstatAt(dirfd int, name string) (Stamp, error) {
	var st unix.Stat_t
	err := Retry(func() error { return unix.Fstatat(dirfd, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return stampOf(&st), err
}

// Retry calls f until it returns something other than EINTR, which a FUSE filesystem may give for any call.
func Retry(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

// Lstat returns the metadata of the entry at path, of which only the final component is not followed. Nothing is opened. The
// error's code is CodeAbsent or CodeIO; a parent that is missing is CodeAbsent too.
func Lstat(path string) (Stamp, error) {
	st, err := lstatAt(unix.AT_FDCWD, path)
	switch {
	case err == unix.ENOENT:
		return Stamp{}, &Error{Code: CodeAbsent, Path: path, Err: err}
	case err != nil:
		return Stamp{}, IOError("stat", path, err)
	}
	return st, nil
}
