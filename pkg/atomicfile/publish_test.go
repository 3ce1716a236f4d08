package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
	"holdfast/pkg/regfile"
)

func TestCreatePublishesWholeContentUnderTheUmask(t *testing.T) {
	for _, c := range []struct {
		mode  uint32
		umask int
		want  fs.FileMode
	}{{0o666, 0o022, 0o644}, {0o666, 0o077, 0o600}, {0o666, 0, 0o666}, {0o600, 0o022, 0o600}} {
		umask(t, c.umask)
		for _, content := range []string{"", "x", strings.Repeat("line\n", 100_000)} {
			dir := t.TempDir()
			check(t, Create(open(t, dir), "stage", "target", []byte(content), c.mode))
			expect(t, dir, map[string]string{"target": content})
			info, err := os.Stat(filepath.Join(dir, "target"))
			check(t, err)
			if info.Mode() != c.want {
				t.Errorf("mode %o under %o: %v", c.mode, c.umask, info.Mode())
			}
		}
	}
}

func TestCreateNeverTouchesWhatIsThere(t *testing.T) {
	for what, make := range map[string]func(path string) error{
		"a file":          func(path string) error { return os.WriteFile(path, []byte("old"), 0o644) },
		"an empty file":   func(path string) error { return os.WriteFile(path, nil, 0o644) },
		"a dangling link": func(path string) error { return os.Symlink("nowhere", path) },
		"a link":          func(path string) error { return os.Symlink("bystander", path) },
		"a directory":     func(path string) error { return os.Mkdir(path, 0o755) },
		"a FIFO":          func(path string) error { return unix.Mkfifo(path, 0o644) },
	} {
		for _, at := range []string{"target", "stage"} {
			t.Run(what+" as the "+at, func(t *testing.T) {
				dir := t.TempDir()
				write(t, filepath.Join(dir, "bystander"), "b")
				check(t, make(filepath.Join(dir, at)))
				before := like(t, open(t, dir), at)
				err := Create(open(t, dir), "stage", "target", []byte("new"), 0o666)
				if !errors.Is(err, fs.ErrExist) {
					t.Errorf("%v", err)
				}
				if after := like(t, open(t, dir), at); after != before {
					t.Errorf("it was %+v and is %+v", before, after)
				}
				names, err := open(t, dir).Names()
				if err != nil || len(names) != 2 {
					t.Errorf("%q %v", names, err)
				}
			})
		}
	}
}

func TestReplaceKeepsModeAndOwner(t *testing.T) {
	umask(t, 0o077) // a new file has this mode; a replaced one has its own
	for _, mode := range []uint32{0o644, 0o666, 0o600, 0o640, 0o400, 0o660} {
		dir := t.TempDir()
		d := open(t, dir)
		path := filepath.Join(dir, "target")
		write(t, path, "old content, which is longer")
		if os.Geteuid() == 0 {
			check(t, os.Chown(path, 1234, 5678))
		}
		check(t, unix.Chmod(path, mode))
		before := like(t, d, "target")
		check(t, Replace(d, "stage", "target", []byte("new"), before))
		expect(t, dir, map[string]string{"target": "new"})
		after := like(t, d, "target")
		if after.Perm() != mode || after.UID != before.UID || after.GID != before.GID || after.Ino == before.Ino {
			t.Errorf("mode %o: it was %+v and is %+v", mode, before, after)
		}
	}
}

func TestAReaderOfTheReplacedFileKeepsItsContent(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	write(t, filepath.Join(dir, "target"), "old")
	f, err := d.Open("target", unix.O_RDONLY)
	check(t, err)
	defer f.Close()
	check(t, Replace(d, "stage", "target", []byte("new"), like(t, d, "target")))
	if snap, err := f.Snapshot(10); err != nil || snap == nil || string(snap.Bytes) != "old" {
		t.Errorf("%v %v", snap, err)
	}
}

func TestReplaceLeavesAForeignStageAlone(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	write(t, filepath.Join(dir, "target"), "old")
	write(t, filepath.Join(dir, "stage"), "somebody's")
	if err := Replace(d, "stage", "target", []byte("new"), like(t, d, "target")); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	expect(t, dir, map[string]string{"target": "old", "stage": "somebody's"})
}

// What is discarded is the inode that was made, not whatever has its name by then.
func TestDiscardRemovesItsOwnStageOnly(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	ours, err := newStage(d, "stage", 0o600)
	check(t, err)
	check(t, os.Rename(filepath.Join(dir, "stage"), filepath.Join(dir, "moved")))
	write(t, filepath.Join(dir, "stage"), "somebody's")
	ours.discard()
	expect(t, dir, map[string]string{"stage": "somebody's", "moved": ""})

	again, err := newStage(d, "second", 0o600)
	check(t, err)
	again.discard()
	expect(t, dir, map[string]string{"stage": "somebody's", "moved": ""})
}

// A stage that something was added to, or cut from, is not published.
func TestAStageOfAnotherLengthIsAnError(t *testing.T) {
	dir := t.TempDir()
	s, err := newStage(open(t, dir), "stage", 0o600)
	check(t, err)
	defer s.discard()
	write(t, filepath.Join(dir, "stage"), "something longer")
	if err := s.fill([]byte("x")); !failed(err, regfile.CodeIO, "write", unix.EIO) {
		t.Error(err)
	}
}

func TestRemove(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	write(t, filepath.Join(dir, "target"), "x")
	check(t, os.Symlink("target", filepath.Join(dir, "link")))
	check(t, Remove(d, "link"))
	expect(t, dir, map[string]string{"target": "x"})
	check(t, Remove(d, "target"))
	expect(t, dir, nil)
	if err := Remove(d, "target"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	check(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	if err := Remove(d, "sub"); !failed(err, regfile.CodeIO, "remove", unix.EISDIR) {
		t.Error(err)
	}
}

func TestMoveRefusesANameThatExists(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	write(t, filepath.Join(dir, "a"), "a")
	write(t, filepath.Join(dir, "b"), "b")
	if err := Move(d, "a", "b"); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	expect(t, dir, map[string]string{"a": "a", "b": "b"})
	before := like(t, d, "a")
	check(t, Move(d, "a", "c"))
	expect(t, dir, map[string]string{"b": "b", "c": "a"})
	if !like(t, d, "c").SameFile(before) {
		t.Error("it was copied")
	}
	if err := Move(d, "a", "d"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestMkdirAcceptsADirectoryThatIsThere(t *testing.T) {
	umask(t, 0o027)
	path := filepath.Join(t.TempDir(), "state")
	check(t, Mkdir(path))
	check(t, Mkdir(path))
	if info, err := os.Stat(path); err != nil || info.Mode() != fs.ModeDir|0o750 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if err := Mkdir(filepath.Join(path, "a", "b")); !failed(err, regfile.CodeIO, "create directory", unix.ENOENT) {
		t.Error(err)
	}
}

// An ordinary user may not give a file away. What replaces root's file is the user's then, in root's mode, and in its
// group where the user is a member.
func TestAnOrdinaryUserReplacesWhatItMay(t *testing.T) {
	testkit.NeedRoot(t)
	dir := t.TempDir()
	check(t, os.Chmod(filepath.Dir(dir), 0o755))
	check(t, os.Chown(dir, testkit.Nobody, testkit.Nobody))
	for name, gid := range map[string]int{"member": 5678, "stranger": 8765} {
		write(t, filepath.Join(dir, name), "old")
		check(t, os.Chown(filepath.Join(dir, name), 0, gid))
		check(t, os.Chmod(filepath.Join(dir, name), 0o664))
	}
	testkit.Play(t, testkit.Command("ordinary", dir))
	d := open(t, dir)
	for name, gid := range map[string]uint32{"member": 5678, "stranger": testkit.Nobody} {
		if st := like(t, d, name); st.UID != testkit.Nobody || st.GID != gid || st.Perm() != 0o664 {
			t.Errorf("%s: %+v", name, st)
		}
	}
	expect(t, dir, map[string]string{"member": "new", "stranger": "new"})
}

func ordinaryUser(args []string) error {
	if err := testkit.Become(testkit.Nobody, 5678); err != nil {
		return err
	}
	d, err := regfile.OpenDir(args[0])
	if err != nil {
		return err
	}
	for _, name := range []string{"member", "stranger"} {
		st, err := d.Lstat(name)
		if err != nil {
			return err
		}
		if err := Replace(d, "stage", name, []byte("new"), st); err != nil {
			return err
		}
	}
	return nil
}
