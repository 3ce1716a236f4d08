package regfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

// TestAnOrdinaryUser runs the part of the same name on a directory of root's: root may read everything, so that what is
// refused can only be seen by somebody else.
func TestAnOrdinaryUser(t *testing.T) {
	testkit.NeedRoot(t)
	dir := t.TempDir()
	check(t, os.Chmod(filepath.Dir(dir), 0o755))
	at := func(name string) string { return filepath.Join(dir, name) }
	write(t, at("secret"), "x")
	check(t, os.Chmod(at("secret"), 0o600))
	check(t, os.Mkdir(at("closed"), 0o700))
	write(t, at("closed/file"), "x")
	check(t, os.Symlink("closed/file", at("link")))
	check(t, os.Mkdir(at("search-only"), 0o711))
	write(t, at("search-only/file"), "found")
	check(t, os.Mkdir(at("sticky"), 0o777))
	check(t, os.Chmod(at("sticky"), 0o777|os.ModeSticky))
	write(t, at("sticky/roots"), "x")
	write(t, at("sticky/secret"), "x")
	check(t, os.Chmod(at("sticky/secret"), 0o600))
	check(t, os.Mkdir(at("open"), 0o777))
	check(t, os.Chmod(at("open"), 0o777))
	write(t, at("open/roots"), "x")
	testkit.Play(t, testkit.Command("ordinary", dir))
}

func ordinaryUser(args []string) error {
	if err := testkit.Become(testkit.Nobody); err != nil {
		return err
	}
	var c testkit.Checks
	for _, noProc := range []bool{false, true} {
		ordinaryReads(&c, args[0], noProc)
	}
	ordinaryLooks(&c, args[0])
	return c.Err()
}

func ordinaryReads(c *testkit.Checks, dir string, noProc bool) {
	read := func(sub, name string) (*Snapshot, error) {
		d, err := OpenDir(filepath.Join(dir, sub))
		if err != nil {
			return nil, err
		}
		defer d.Close()
		d.noProc = noProc
		return d.ReadOwned(name, DefaultLimit)
	}
	var e *Error
	_, err := read(".", "secret")
	c.That(errors.As(err, &e) && e.Code == CodeIO && e.Kind == Regular && e.Stamp != nil && e.Stamp.Size == 1 &&
		errors.Is(err, unix.EACCES) && strings.Contains(err.Error(), "EACCES (permission denied)"),
		"a file that may not be read, noProc %v: %+v", noProc, err)

	_, err = read("closed", "file")
	c.That(errors.As(err, &e) && e.Code == CodeIO && e.Kind == Unexaminable && errors.Is(err, unix.EACCES),
		"a file in a closed directory, noProc %v: %+v", noProc, err)

	snap, err := read("search-only", "file")
	c.That(err == nil && string(snap.Bytes) == "found", "a directory that may only be searched, noProc %v: %v", noProc, err)

	_, err = read("sticky", "roots")
	c.That(errors.As(err, &e) && e.Code == CodeForeignOwner && e.UID == 0 && e.Kind == Regular &&
		strings.HasSuffix(err.Error(), "roots belongs to uid 0 and lies in a world-writable sticky directory, so it is not trusted"),
		"root's file in a sticky directory, noProc %v: %v", noProc, err)

	_, err = read("sticky", "secret")
	c.That(errors.As(err, &e) && e.Code == CodeForeignOwner && e.UID == 0, "root's secret in a sticky directory, noProc %v: %v", noProc, err)

	d, err := OpenDir(filepath.Join(dir, "sticky"))
	c.That(err == nil, "%v", err)
	defer d.Close()
	d.noProc = noProc
	_, err = d.OpenOwned("secret", unix.O_RDWR)
	c.That(errors.As(err, &e) && e.Code == CodeForeignOwner && e.UID == 0, "opening it, noProc %v: %v", noProc, err)

	_, err = read("open", "roots")
	c.That(err == nil, "root's file in a directory that is not sticky, noProc %v: %v", noProc, err)

	mine := filepath.Join(dir, "sticky", "mine")
	c.That(os.WriteFile(mine, []byte("m"), 0o600) == nil, "cannot write")
	_, err = read("sticky", "mine")
	c.That(err == nil, "our file in a sticky directory, noProc %v: %v", noProc, err)
}

func ordinaryLooks(c *testkit.Checks, dir string) {
	d, err := OpenDir(filepath.Join(dir, "search-only"))
	if err != nil {
		c.That(false, "%v", err)
		return
	}
	defer d.Close()
	_, err = d.Names()
	var e *Error
	c.That(errors.As(err, &e) && e.Code == CodeIO && errors.Is(err, unix.EACCES), "names of a directory that may only be searched: %v", err)

	in := Classify(filepath.Join(dir, "closed/file"))
	c.That(in.Stamp.Kind == Unexaminable && errors.Is(in.Err, unix.EACCES), "classify in a closed directory: %+v", in)
	link := Classify(filepath.Join(dir, "link"))
	c.That(link.Stamp.Kind == Symlink && link.Target == "closed/file" && link.ResolvesKind == Unexaminable && link.ResolvesTo == "",
		"classify a link into a closed directory: %+v", link)
	secret := Classify(filepath.Join(dir, "secret"))
	c.That(secret.Stamp.Kind == Regular && secret.Err == nil, "classify a file that may not be read: %+v", secret)
}

// The other direction: root does not trust what another user has put into a sticky directory either.
func TestRootDoesNotTrustAForeignFileInAStickyDirectory(t *testing.T) {
	testkit.NeedRoot(t)
	both(t, func(t *testing.T, noProc bool) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "file"), "x")
		check(t, os.Chown(filepath.Join(dir, "file"), testkit.Nobody, testkit.Nobody))
		for mode, trusted := range map[os.FileMode]bool{
			0o755: true, 0o777: true, 0o755 | os.ModeSticky: true, 0o777 | os.ModeSticky: false, 0o773 | os.ModeSticky: false,
		} {
			check(t, os.Chmod(dir, mode))
			d := openDir(t, dir, noProc)
			if _, err := d.Read("file", DefaultLimit); err != nil {
				t.Error(err)
			}
			_, err := d.ReadOwned("file", DefaultLimit)
			if trusted && err != nil {
				t.Errorf("mode %v: %v", mode, err)
			}
			if !trusted {
				if e := coded(t, err, CodeForeignOwner); e.UID != testkit.Nobody {
					t.Errorf("uid %d", e.UID)
				}
			}
			f, err := d.OpenOwned("file", unix.O_RDWR)
			if err == nil {
				f.Close()
			}
			if trusted != (err == nil) {
				t.Errorf("mode %v: open: %v", mode, err)
			}
		}
	})
}
