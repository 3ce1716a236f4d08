// Package atomicfile writes state files: publish, replace, remove, append.
//
// # Guarantees
//
//   - Nothing is written in place. New content is staged beside its target under the caller's staging name
//     (O_CREAT|O_EXCL|O_NOFOLLOW), its length is checked and it is synced; only then does it get the target's name. So a
//     reader sees the old bytes or the new ones, whole, also after a power cut.
//   - A write that fails (ENOSPC, EDQUOT, EFBIG, EIO, EROFS …) leaves the target as it was and removes its own stage.
//   - A replaced file keeps its mode, and its owner and group where the system permits.
//   - Append adds one line at the end in one write, or leaves the file at its former length.
//
// # Not guaranteed
//
//   - Callers hold the claim that serializes mutations of the target (package claim). Where a filesystem has neither
//     rename-no-replace nor hard links, Create relies on that: it looks and then renames.
//   - The new name is durable only after Dir.Sync.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"holdfast/pkg/regfile"
)

// Create publishes content as target, which must not exist, with mode under the umask. An error that is
// fs.ErrExist means that the target or the stage was there already.
func Create(d *regfile.Dir, stage, target string, content []byte, mode uint32) error {
	s, err := StageNew(d, stage, content, mode)
	if err != nil {
		return err
	}
	defer s.Discard()
	return s.Create(d, target)
}

// Replace puts content in the place of target, keeping the mode and owner that like records. A stage that was there
// already is fs.ErrExist, one that was taken away fs.ErrNotExist.
func Replace(d *regfile.Dir, stage, target string, content []byte, like regfile.Stamp) error {
	s, err := StageLike(d, stage, content, like)
	if err != nil {
		return err
	}
	defer s.Discard()
	return s.Replace(d, target)
}

// Staged is content that is durable under its staging name, and waits for its target's: so that of several files none is
// published before all of them are written. Discard must be called.
type Staged struct{ stage *stage }

// StageNew stages the content of a new file, with mode under the umask.
func StageNew(d *regfile.Dir, name string, content []byte, mode uint32) (*Staged, error) {
	s, err := newStage(d, name, mode)
	if err != nil {
		return nil, err
	}
	return filled(s, content)
}

// StageLike stages what will replace a file, with the mode and owner that like records.
func StageLike(d *regfile.Dir, name string, content []byte, like regfile.Stamp) (*Staged, error) {
	s, err := newStage(d, name, 0o600)
	if err != nil {
		return nil, err
	}
	if err := s.imitate(like); err != nil {
		s.discard()
		return nil, err
	}
	return filled(s, content)
}

func filled(s *stage, content []byte) (*Staged, error) {
	if err := s.fill(content); err != nil {
		s.discard()
		return nil, err
	}
	return &Staged{s}, nil
}

// Create publishes the stage as target in d, of the same filesystem; target must not exist (fs.ErrExist).
func (s *Staged) Create(d *regfile.Dir, target string) error { return s.stage.publish(d, target) }

// Replace publishes the stage in the place of target in d, of the same filesystem.
func (s *Staged) Replace(d *regfile.Dir, target string) error {
	stages := s.stage.dir
	if err := regfile.Retry(func() error { return unix.Renameat(stages.FD(), s.stage.name, d.FD(), target) }); err != nil {
		return nameError("replace", d.Join(target), err)
	}
	s.stage.published = true
	return nil
}

// Discard removes the stage unless it was published.
func (s *Staged) Discard() { s.stage.discard() }

// Remove unlinks target.
func Remove(d *regfile.Dir, target string) error {
	if err := regfile.Retry(func() error { return unix.Unlinkat(d.FD(), target, 0) }); err != nil {
		return nameError("remove", d.Join(target), err)
	}
	return nil
}

// Move renames target to aside, which must not exist (fs.ErrExist).
func Move(d *regfile.Dir, target, aside string) error {
	return MoveTo(d, target, d, aside)
}

// MoveTo is Move into another directory of the same filesystem.
func MoveTo(d *regfile.Dir, target string, to *regfile.Dir, aside string) error {
	if err := renameNoReplace(d, target, to, aside); err != nil {
		return nameError("move", d.Join(target), err)
	}
	return nil
}

// nameError tells a mount point from the other failures of rename and unlink: only a mount point is busy.
func nameError(op, path string, err error) error {
	e := regfile.IOError(op, path, err)
	if errors.Is(err, unix.EBUSY) {
		e.Code = regfile.CodeMountPoint
	}
	return e
}

// stage is a staged file that has not got its name yet.
type stage struct {
	dir       *regfile.Dir
	name      string
	fd        int
	published bool
}

func newStage(d *regfile.Dir, name string, mode uint32) (*stage, error) {
	s := &stage{dir: d, name: name}
	err := regfile.Retry(func() (err error) {
		s.fd, err = unix.Openat(d.FD(), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
		return err
	})
	if err != nil {
		return nil, regfile.IOError("create", d.Join(name), err)
	}
	return s, nil
}

// imitate gives the stage the owner and mode of the file it will replace. Giving files away is a privilege, so a refusal
// to change the owner is accepted; a mode that cannot be kept is not.
func (s *stage) imitate(like regfile.Stamp) error {
	var st unix.Stat_t
	if err := regfile.Retry(func() error { return unix.Fstat(s.fd, &st) }); err != nil {
		return regfile.IOError("stat", s.dir.Join(s.name), err)
	}
	if st.Uid != like.UID || st.Gid != like.GID {
		err := regfile.Retry(func() error { return unix.Fchown(s.fd, int(like.UID), int(like.GID)) })
		if err != nil && st.Gid != like.GID {
			_ = regfile.Retry(func() error { return unix.Fchown(s.fd, -1, int(like.GID)) })
		}
	}
	if err := regfile.Retry(func() error { return unix.Fchmod(s.fd, like.Perm()) }); err != nil {
		return regfile.IOError("set the mode of", s.dir.Join(s.name), err)
	}
	return nil
}

// fill writes the content, checks that all of it arrived, and syncs it.
func (s *stage) fill(content []byte) error {
	path := s.dir.Join(s.name)
	if _, err := writeAll(s.fd, content); err != nil {
		return regfile.IOError("write", path, err)
	}
	var st unix.Stat_t
	if err := regfile.Retry(func() error { return unix.Fstat(s.fd, &st) }); err != nil {
		return regfile.IOError("stat", path, err)
	}
	if st.Size != int64(len(content)) {
		return regfile.IOError("write", path, unix.EIO)
	}
	if err := regfile.Retry(func() error { return datasync(s.fd) }); err != nil {
		return regfile.IOError("sync", path, err)
	}
	return nil
}

func (s *stage) publish(d *regfile.Dir, target string) error {
	if err := renameNoReplace(s.dir, s.name, d, target); err != nil {
		return nameError("publish", d.Join(target), err)
	}
	s.published = true
	return nil
}

// discard closes the stage and, unless it was published, removes it. It removes the inode it made and no other.
func (s *stage) discard() {
	if s.published {
		unix.Close(s.fd)
		return
	}
	var ours unix.Stat_t
	err := regfile.Retry(func() error { return unix.Fstat(s.fd, &ours) })
	unix.Close(s.fd)
	if err != nil {
		return
	}
	if st, err := s.dir.Lstat(s.name); err == nil && st.Dev == uint64(ours.Dev) && st.Ino == ours.Ino {
		_ = regfile.Retry(func() error { return unix.Unlinkat(s.dir.FD(), s.name, 0) })
	}
}

// writeAll writes b and returns how much of it was written; a short write is continued, which yields its errno.
func writeAll(fd int, b []byte) (int, error) {
	total := 0
	for total < len(b) {
		n, err := unix.Write(fd, b[total:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return total, err
		}
		if n == 0 {
			return total, unix.EIO
		}
		total += n
	}
	return total, nil
}

// renameNoReplace renames from to to unless to exists. Where the filesystem cannot do that in one step it links, which
// refuses an existing name as well; where it has no links either it looks first, which the caller's claim makes safe.
func renameNoReplace(d *regfile.Dir, from string, into *regfile.Dir, to string) error {
	err := regfile.Retry(func() error { return renameExclusive(d.FD(), from, into.FD(), to) })
	if !unsupported(err) {
		return err
	}
	err = regfile.Retry(func() error { return unix.Linkat(d.FD(), from, into.FD(), to, 0) })
	if err == nil {
		return regfile.Retry(func() error { return unix.Unlinkat(d.FD(), from, 0) })
	}
	if !unsupported(err) && !errors.Is(err, unix.EPERM) {
		return err
	}
	if _, err := into.Lstat(to); err == nil {
		return unix.EEXIST
	} else if !errors.Is(err, fs.ErrNotExist) {
		return errnoOf(err)
	}
	return regfile.Retry(func() error { return unix.Renameat(d.FD(), from, into.FD(), to) })
}

func unsupported(err error) bool {
	return errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) ||
		errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EMLINK)
}

func errnoOf(err error) error {
	var no unix.Errno
	if errors.As(err, &no) {
		return no
	}
	return err
}

// Mkdir creates a directory with mode 0777 under the umask; one that exists is no error.
func Mkdir(path string) error {
	if err := os.Mkdir(path, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return regfile.IOError("create directory", path, errnoOf(err))
	}
	return nil
}

// RemoveDir removes the directory called name, which must be empty (ENOTEMPTY).
func RemoveDir(d *regfile.Dir, name string) error {
	if err := regfile.Retry(func() error { return unix.Unlinkat(d.FD(), name, unix.AT_REMOVEDIR) }); err != nil {
		return nameError("remove", d.Join(name), err)
	}
	return nil
}
