package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/pkg/regfile"
)

func openJournal(t testing.TB, dir string) *regfile.File {
	t.Helper()
	f, err := open(t, dir).Open("journal", unix.O_RDWR|unix.O_APPEND)
	check(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func TestAppendAddsALineAtTheEnd(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "journal"), "")
	f := openJournal(t, dir)
	want := ""
	for i, line := range []string{"one\n", "two\n", strings.Repeat("x", 100_000) + "\n"} {
		check(t, Append(f, []byte(line), int64(len(want)), i%2 == 0))
		want += line
		expect(t, dir, map[string]string{"journal": want})
	}
}

// The caller chose its number from a file that ended at end. A line that lies elsewhere was not the next one.
func TestAppendSaysWhenTheFileGrewMeanwhile(t *testing.T) {
	for name, foreign := range map[string]string{
		"a longer line":             "somebody's line\n",
		"a line of the same length": "uno\n",
		"a part of a line":          "x",
		"an empty line":             "\n",
		"its own beginning":         "on",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "journal"), "first\n")
			f := openJournal(t, dir)
			_, err := unix.Write(openJournal(t, dir).FD(), []byte(foreign))
			check(t, err)
			if err := Append(f, []byte("one\n"), f.Stamp().Size, false); !errors.Is(err, ErrMoved) {
				t.Error(err)
			}
			expect(t, dir, map[string]string{"journal": "first\n" + foreign + "one\n"})
		})
	}
}

func TestAppendSaysWhenTheFileWasCutMeanwhile(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "journal"), "first\nsecond\n")
	f := openJournal(t, dir)
	check(t, os.Truncate(filepath.Join(dir, "journal"), 6))
	if err := Append(f, []byte("one\n"), 13, true); !errors.Is(err, ErrMoved) {
		t.Error(err)
	}
}

func TestAppendToAFileOpenedForReadingFails(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "journal"), "first\n")
	f, err := open(t, dir).Open("journal", unix.O_RDONLY)
	check(t, err)
	defer f.Close()
	if err := Append(f, []byte("one\n"), 6, false); !failed(err, regfile.CodeIO, "write", unix.EBADF) {
		t.Error(err)
	}
	expect(t, dir, map[string]string{"journal": "first\n"})
}

// The undo of a partial write takes back nothing but its own bytes: when somebody wrote after them they stay.
func TestUndoCutsOffNothingForeign(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "journal"), "first\npar")
	f := openJournal(t, dir)
	undo(f, 6, 3)
	expect(t, dir, map[string]string{"journal": "first\n"})
	write(t, filepath.Join(dir, "journal"), "first\nparsecond\n")
	undo(f, 6, 3)
	expect(t, dir, map[string]string{"journal": "first\nparsecond\n"})
}

func TestWriteNewFillsAnEmptyFile(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "new"), "")
	f, err := os.OpenFile(filepath.Join(dir, "new"), os.O_RDWR, 0)
	check(t, err)
	defer f.Close()
	check(t, WriteNew(int(f.Fd()), []byte("evidence\n")))
	expect(t, dir, map[string]string{"new": "evidence\n"})
}
