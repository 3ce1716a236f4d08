package regfile

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestALimitIsTheLargestSizeThatIsRead(t *testing.T) {
	both(t, func(t *testing.T, noProc bool) {
		dir := t.TempDir()
		d := openDir(t, dir, noProc)
		for _, limit := range []int64{0, 1, 4095, 4096, 4097, DefaultLimit} {
			write(t, filepath.Join(dir, "exact"), strings.Repeat("x", int(limit)))
			write(t, filepath.Join(dir, "above"), strings.Repeat("x", int(limit)+1))
			snap, err := d.Read("exact", limit)
			if err != nil || int64(len(snap.Bytes)) != limit {
				t.Errorf("limit %d: %v", limit, err)
			}
			_, err = d.Read("above", limit)
			e := coded(t, err, CodeTooLarge)
			if e.Limit != limit || e.Stamp == nil || e.Stamp.Size != limit+1 || !strings.Contains(e.Error(), "so it was not read") {
				t.Errorf("limit %d: %+v %v", limit, e, e)
			}
		}
	})
}

func TestASparseFileIsRefusedByItsSize(t *testing.T) {
	both(t, func(t *testing.T, noProc bool) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "sparse"), "")
		check(t, os.Truncate(filepath.Join(dir, "sparse"), 1<<40))
		_, err := openDir(t, dir, noProc).Read("sparse", DefaultLimit)
		if e := coded(t, err, CodeTooLarge); e.Stamp.Size != 1<<40 {
			t.Errorf("%v", e)
		}
	})
}

// What happens between the open and the last stat is staged here: the file is changed after it was opened.
func TestAFileThatChangesWhileItIsReadGivesNoSnapshot(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, path string){
		"grows":                      func(t *testing.T, path string) { appendTo(t, path, "more") },
		"grows from a full page":     func(t *testing.T, path string) { appendTo(t, path, strings.Repeat("y", 4096)) },
		"shrinks":                    func(t *testing.T, path string) { check(t, os.Truncate(path, 3)) },
		"is emptied":                 func(t *testing.T, path string) { check(t, os.Truncate(path, 0)) },
		"is rewritten in its length": func(t *testing.T, path string) { overwrite(t, path, strings.Repeat("b", 5000)) },
		"is rewritten in a part":     func(t *testing.T, path string) { overwrite(t, path, "b") },
		"shrinks, its time set back": func(t *testing.T, path string) {
			info, err := os.Stat(path)
			check(t, err)
			check(t, os.Truncate(path, 3))
			check(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, noProc bool) {
				dir := t.TempDir()
				path := filepath.Join(dir, "file")
				write(t, path, strings.Repeat("a", 5000))
				age(t, path)
				f, err := openDir(t, dir, noProc).Open("file", 0)
				check(t, err)
				defer f.Close()
				change(t, path)
				if snap, err := f.Snapshot(DefaultLimit); snap != nil || err != nil {
					t.Errorf("a snapshot of %d bytes, %v", len(snap.Bytes), err)
				}
			})
		})
	}
}

func TestAFileThatIsReplacedWhileItIsReadGivesTheOldContentWhole(t *testing.T) {
	both(t, func(t *testing.T, noProc bool) {
		dir := t.TempDir()
		path := filepath.Join(dir, "file")
		write(t, path, "old")
		f, err := openDir(t, dir, noProc).Open("file", 0)
		check(t, err)
		defer f.Close()
		write(t, filepath.Join(dir, "stage"), "new content")
		check(t, os.Rename(filepath.Join(dir, "stage"), path))
		snap, err := f.Snapshot(DefaultLimit)
		if err != nil || snap == nil || string(snap.Bytes) != "old" {
			t.Errorf("%v, %v", snap, err)
		}
	})
}

func TestGrowthPastTheLimitIsNotReadToItsEnd(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	write(t, path, "a")
	f, err := openDir(t, dir, false).Open("file", 0)
	check(t, err)
	defer f.Close()
	appendTo(t, path, strings.Repeat("b", 1<<20))
	for _, limit := range []int64{1, 2, 100, 4096} {
		content, err := f.readAll(limit)
		if err != nil || int64(len(content)) != limit+1 {
			t.Errorf("limit %d: %d bytes, %v", limit, len(content), err)
		}
		_, err = f.Snapshot(limit)
		if e := coded(t, err, CodeTooLarge); !strings.HasSuffix(e.Error(), "while it was read") {
			t.Errorf("%v", e)
		}
	}
}

// A writer that never rests is told as such, after three attempts.
func TestAFileThatChangesEachTimeIsUnstable(t *testing.T) {
	both(t, func(t *testing.T, noProc bool) {
		dir := t.TempDir()
		path := filepath.Join(dir, "file")
		write(t, path, strings.Repeat("a", DefaultLimit/2))
		d := openDir(t, dir, noProc)
		stop := keepChanging(t, path)
		defer stop()
		sawUnstable := false
		for deadline := time.Now().Add(20 * time.Second); !sawUnstable && time.Now().Before(deadline); {
			if _, err := d.Read("file", DefaultLimit); err != nil {
				e := coded(t, err, CodeUnstable)
				sawUnstable = strings.HasSuffix(e.Error(), "changed each time it was read")
			}
		}
		if !sawUnstable {
			t.Error("a file that changed all the time was never called unstable")
		}
	})
}

// keepChanging sets the modification time of a file as fast as it can.
func keepChanging(t *testing.T, path string) (stop func()) {
	var end atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := int64(0); !end.Load(); n++ {
			if err := os.Chtimes(path, time.Time{}, time.Unix(n, 0)); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	return func() {
		end.Store(true)
		<-done
	}
}

func TestFingerprints(t *testing.T) {
	for content, want := range map[string]string{
		"":      "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"abc":   "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
		"abc\n": "sha256:edeaaff3f1774ad2888673770c6d64097e391bc362d7d6fb34982ddf0efd18cb",
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "file"), content)
		snap, err := openDir(t, dir, false).Read("file", DefaultLimit)
		check(t, err)
		if snap.Fingerprint() != want || Fingerprint([]byte(content)) != want {
			t.Errorf("%q: %s", content, snap.Fingerprint())
		}
	}
	s := Stamp{Dev: 1, Ino: 2, Size: 3, Mtime: time.Unix(4, 5)}
	if got := s.Fingerprint(); got != "stat:1-2-3-4000000005" {
		t.Error(got)
	}
	for _, other := range []Stamp{
		{Dev: 9, Ino: 2, Size: 3, Mtime: time.Unix(4, 5)}, {Dev: 1, Ino: 9, Size: 3, Mtime: time.Unix(4, 5)},
		{Dev: 1, Ino: 2, Size: 9, Mtime: time.Unix(4, 5)}, {Dev: 1, Ino: 2, Size: 3, Mtime: time.Unix(4, 6)},
	} {
		if other.Fingerprint() == s.Fingerprint() {
			t.Errorf("%+v has the same fingerprint", other)
		}
	}
}

func TestAStampIsWhatTheSystemSays(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	write(t, path, "12345")
	check(t, os.Chmod(path, 0o640))
	check(t, os.Link(path, filepath.Join(dir, "second")))
	mtime := time.Date(2020, 1, 2, 3, 4, 5, 678901234, time.UTC)
	check(t, os.Chtimes(path, time.Time{}, mtime))
	st, err := openDir(t, dir, false).Lstat("file")
	check(t, err)
	if st.Size != 5 || st.Perm() != 0o640 || st.Nlink != 2 || st.UID != uint32(os.Getuid()) || !st.Mtime.Equal(mtime) {
		t.Errorf("%+v", st)
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	check(t, err)
	_, err = f.WriteString(text)
	check(t, err)
	check(t, f.Close())
}

func overwrite(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	check(t, err)
	_, err = f.WriteString(text)
	check(t, err)
	check(t, f.Close())
}

// age makes a file look an hour old, so that a clock that ticks coarsely does not hide the next change.
func age(t *testing.T, path string) {
	t.Helper()
	old := time.Now().Add(-time.Hour)
	check(t, os.Chtimes(path, old, old))
}
