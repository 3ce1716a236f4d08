package regfile

import "golang.org/x/sys/unix"

// Kind is the type of a directory entry, as a stable word.
type Kind string

// The kinds. Unexaminable is an entry whose type could not be established.
const (
	Regular      Kind = "regular"
	Directory    Kind = "directory"
	Symlink      Kind = "symlink"
	FIFO         Kind = "fifo"
	Socket       Kind = "socket"
	CharDevice   Kind = "char-device"
	BlockDevice  Kind = "block-device"
	Absent       Kind = "absent"
	Unexaminable Kind = "unexaminable"
)

// Noun returns the kind as a sentence needs it, with its article.
func (k Kind) Noun() string {
	switch k {
	case Regular:
		return "a regular file"
	case Directory:
		return "a directory"
	case Symlink:
		return "a symlink"
	case FIFO:
		return "a named pipe"
	case Socket:
		return "a socket"
	case CharDevice:
		return "a character device"
	case BlockDevice:
		return "a block device"
	case Absent:
		return "absent"
	}
	return "of unknown type"
}

func kindOf(mode uint32) Kind {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return Regular
	case unix.S_IFDIR:
		return Directory
	case unix.S_IFLNK:
		return Symlink
	case unix.S_IFIFO:
		return FIFO
	case unix.S_IFSOCK:
		return Socket
	case unix.S_IFCHR:
		return CharDevice
	case unix.S_IFBLK:
		return BlockDevice
	}
	return Unexaminable
}
