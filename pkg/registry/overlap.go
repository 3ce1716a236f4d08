package registry

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"holdfast/pkg/regfile"
)

// within reports whether root is above or the same as other, by whole path segments.
func within(root, other string) bool { return strings.HasPrefix(segments(other), segments(root)) }

// segments is a path that ends in a slash, so that a prefix of it is an ancestor.
func segments(p string) string { return strings.TrimSuffix(p, "/") + "/" }

// overlapText reports whether one of two roots is the other or an ancestor of it, and how the first relates to the second.
func overlapText(root, other string) (relation string, overlaps bool) {
	switch {
	case root == other:
		return "the same as", true
	case within(other, root):
		return "inside", true
	case within(root, other):
		return "an ancestor of", true
	}
	return "", false
}

// overlapping finds two rows whose roots overlap: once sorted, what lies below a root follows it without a gap.
func overlapping(rows []Reservation) (a, b string, found bool) {
	roots := make([]string, len(rows))
	for i, r := range rows {
		roots[i] = segments(r.Root)
	}
	slices.Sort(roots)
	for i := 1; i < len(roots); i++ {
		if strings.HasPrefix(roots[i], roots[i-1]) {
			return path.Clean(roots[i-1]), path.Clean(roots[i]), true
		}
	}
	return "", "", false
}

// inode names a directory by what the filesystem calls it, whatever its path.
type inode struct{ dev, ino uint64 }

func (n inode) String() string { return fmt.Sprintf("%d:%d", n.dev, n.ino) }

// places looks directories up, each once.
type places map[string]*inode

// of is the inode of a path; nil when nothing is there.
func (p places) of(dir string) (*inode, error) {
	if n, ok := p[dir]; ok {
		return n, nil
	}
	var st unix.Stat_t
	err := regfile.Retry(func() error { return unix.Stat(dir, &st) })
	switch {
	case err == nil:
		p[dir] = &inode{uint64(st.Dev), st.Ino}
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		p[dir] = nil
	default:
		return nil, regfile.IOError("stat", dir, err)
	}
	return p[dir], nil
}

// chain are the inodes of a directory and of all above it.
func (p places) chain(dir string) ([]inode, error) {
	var found []inode
	for {
		n, err := p.of(dir)
		if err != nil {
			return nil, err
		}
		if n != nil {
			found = append(found, *n)
		}
		if dir == "/" {
			return found, nil
		}
		dir = path.Dir(dir)
	}
}

// conflictingRow finds a row whose root is the new root, or above or below it: by text, and by inode, which sees through bind
// mounts and through filesystems on which two spellings are one name.
func conflictingRow(root string, rows []Reservation) (row *Reservation, relation string, err error) {
	for i := range rows {
		if how, overlaps := overlapText(root, rows[i].Root); overlaps {
			return &rows[i], how, nil
		}
	}
	seen := places{}
	mine, err := seen.chain(root)
	if err != nil {
		return nil, "", err
	}
	for i := range rows {
		own, err := seen.of(rows[i].Root)
		if err != nil || own == nil {
			continue // gone, or out of reach: what stands above it may be anything by now, and it must not hurt the others
		}
		theirs, err := seen.chain(rows[i].Root)
		if err != nil {
			return nil, "", err
		}
		switch {
		case *own == mine[0]:
			return &rows[i], "the same directory as", nil
		case slices.Contains(mine, *own):
			return &rows[i], "inside", nil
		case slices.Contains(theirs, mine[0]):
			return &rows[i], "an ancestor of", nil
		}
	}
	return nil, "", nil
}
