package atomicfile

import (
	"bytes"
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"holdfast/pkg/regfile"
)

// ErrMoved says that the appended bytes do not lie where the file ended: somebody else wrote to it.
var ErrMoved = errors.New("the file grew while a line was appended to it")

// Append adds b to f, which was opened with O_APPEND, in one write, and checks that it lies at offset end, where the
// caller saw the file end. With sync it is durable on return. A write that fails leaves the file at its former length.
func Append(f *regfile.File, b []byte, end int64, sync bool) error {
	if n, err := writeAll(f.FD(), b); err != nil {
		if n > 0 {
			undo(f, end, int64(n))
		}
		return regfile.IOError("write", f.Path(), err)
	}
	back := make([]byte, len(b))
	n, err := f.ReadAt(back, end)
	if err != nil {
		return err
	}
	if !bytes.Equal(back[:n], b) {
		return ErrMoved
	}
	if sync {
		if err := regfile.Retry(func() error { return datasync(f.FD()) }); err != nil {
			return regfile.IOError("sync", f.Path(), err)
		}
	}
	return nil
}

// undo cuts a partly written line off again, if nothing came after it.
func undo(f *regfile.File, end, written int64) {
	if st, err := f.Stat(); err == nil && st.Size == end+written {
		_ = regfile.Retry(func() error { return unix.Ftruncate(f.FD(), end) })
	}
}

// WriteNew fills a file the caller has just created, or leaves it empty.
func WriteNew(fd int, b []byte) error {
	n, err := writeAll(fd, b)
	if err != nil && n > 0 {
		_ = regfile.Retry(func() error { return unix.Ftruncate(fd, 0) })
	}
	return err
}

// AppendLine adds a line to a log that was opened with O_APPEND, in one write: nobody's lines are mixed with it.
func AppendLine(f *regfile.File, line []byte) error {
	if _, err := writeAll(f.FD(), line); err != nil {
		return regfile.IOError("write", f.Path(), err)
	}
	return nil
}

// Ensure creates an empty file with mode under the umask, unless the name exists.
func Ensure(d *regfile.Dir, name string, mode uint32) error {
	s, err := newStage(d, name, mode)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return unix.Close(s.fd)
}
