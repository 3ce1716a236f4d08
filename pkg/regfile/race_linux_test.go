package regfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

// A file that is replaced by rename is read whole, old or new, by both ways at once. It is there all the time, so it is
// never absent; through /proc it is never in doubt either, while the comparing way may be overtaken three times running.
func TestAFileReplacedByRenameIsAlwaysWhole(t *testing.T) {
	const replacements, size = 10_000, 6000
	dir := testkit.MemDir(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	contents := []string{strings.Repeat("a", size), strings.Repeat("b", size+1)}
	write(t, at("file"), contents[0])
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for _, noProc := range []bool{false, true} {
		d := openDir(t, dir, noProc)
		readers.Go(func() {
			reads := 0
			for ; ; reads++ {
				select {
				case <-stop:
					if reads == 0 {
						t.Error("nothing was read")
					}
					return
				default:
				}
				snap, err := d.Read("file", DefaultLimit)
				var e *Error
				switch {
				case noProc && errors.As(err, &e) && e.Code == CodeUnstable:
				case err != nil:
					t.Errorf("noProc %v: %v", noProc, err)
					return
				case string(snap.Bytes) != contents[0] && string(snap.Bytes) != contents[1]:
					t.Errorf("noProc %v: a mix of %d bytes", noProc, len(snap.Bytes))
					return
				}
			}
		})
	}
	for n := 1; n <= replacements; n++ {
		write(t, at("stage"), contents[n%2])
		check(t, os.Rename(at("stage"), at("file")))
	}
	close(stop)
	readers.Wait()
}

// A FIFO and a file change places as fast as they can. Whoever reads the name gets the file's content or a refusal, and
// never waits for the FIFO; through /proc it does not even open it.
func TestAFIFOSwappedInNeverBlocks(t *testing.T) {
	both(t, func(t *testing.T, noProc bool) {
		dir := t.TempDir()
		at := func(name string) string { return filepath.Join(dir, name) }
		write(t, at("name"), "content")
		check(t, unix.Mkfifo(at("other"), 0o666))
		if !noProc { // before the names change places: it is the FIFO that is watched
			defer neverOpened(t, at("other"))()
		}
		stop := make(chan struct{})
		var others sync.WaitGroup
		others.Go(func() { exchange(t, at("name"), at("other"), stop) })
		d := openDir(t, dir, noProc)
		testkit.Within(t, 60*time.Second, func() {
			seen := map[string]int{}
			for range 8000 {
				snap, err := d.Read("name", DefaultLimit)
				var e *Error
				switch {
				case err == nil && string(snap.Bytes) == "content":
					seen["content"]++
				case errors.As(err, &e) && e.Code == CodeNotRegular && e.Kind == FIFO, noProc && errors.As(err, &e) && e.Code == CodeUnstable:
					seen[e.Code]++
				default:
					t.Errorf("%v", err)
					return
				}
			}
			if seen["content"] == 0 || seen[CodeNotRegular] == 0 {
				t.Errorf("not both were seen: %v", seen)
			}
		})
		close(stop)
		others.Wait()
	})
}

// A symlink that is swapped in is not followed either, not even for the moment in which the two ways differ.
func TestASymlinkSwappedInIsNeverFollowed(t *testing.T) {
	both(t, func(t *testing.T, noProc bool) {
		dir := testkit.MemDir(t)
		at := func(name string) string { return filepath.Join(dir, name) }
		write(t, at("name"), "content")
		check(t, unix.Mkfifo(at("fifo"), 0o666))
		check(t, os.Symlink("fifo", at("other")))
		stop := make(chan struct{})
		var others sync.WaitGroup
		others.Go(func() { exchange(t, at("name"), at("other"), stop) })
		defer neverOpened(t, at("fifo"))()
		d := openDir(t, dir, noProc)
		testkit.Within(t, 60*time.Second, func() {
			for range 20_000 {
				snap, err := d.Read("name", DefaultLimit)
				var e *Error
				if !(err == nil && string(snap.Bytes) == "content" || errors.As(err, &e) &&
					(e.Code == CodeNotRegular && e.Kind == Symlink || noProc && e.Code == CodeUnstable)) {
					t.Errorf("%v", err)
					return
				}
			}
		})
		close(stop)
		others.Wait()
	})
}

func exchange(t *testing.T, a, b string, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
			if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
				t.Error(err)
				return
			}
		}
	}
}

// neverOpened watches a file and returns a check that nobody has opened it since, not even for a moment.
func neverOpened(t *testing.T, path string) (verify func()) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	check(t, err)
	_, err = unix.InotifyAddWatch(fd, path, unix.IN_OPEN)
	check(t, err)
	return func() {
		t.Helper()
		defer unix.Close(fd)
		var event [4096]byte
		if n, err := unix.Read(fd, event[:]); err != unix.EAGAIN {
			t.Errorf("%s was opened (%d, %v)", path, n, err)
		}
	}
}

// A kernel lease makes an ordinary open wait for its holder, for up to 45 seconds.
func TestAFileUnderAKernelLeaseIsBusy(t *testing.T) {
	both(t, func(t *testing.T, noProc bool) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "file"), "x")
		holder, err := os.OpenFile(filepath.Join(dir, "file"), os.O_RDWR, 0)
		check(t, err)
		defer holder.Close()
		testkit.Need(t, testkit.KernelLease(holder) == nil, "a filesystem with kernel leases")
		d := openDir(t, dir, noProc)
		testkit.Within(t, 10*time.Second, func() {
			_, err := d.Read("file", DefaultLimit)
			if e := coded(t, err, CodeBusy); e.Kind != Regular || !strings.HasSuffix(e.Error(), "is under another process's kernel lease") {
				t.Errorf("%+v", e)
			}
		})
		check(t, testkit.KernelUnlease(holder))
		if snap, err := d.Read("file", DefaultLimit); err != nil || string(snap.Bytes) != "x" {
			t.Errorf("after the lease: %v", err)
		}
	})
}

func TestAFileThatAnnouncesNoSizeIsReadToItsEnd(t *testing.T) {
	both(t, func(t *testing.T, noProc bool) {
		snap, err := openDir(t, "/proc/sys/kernel", noProc).Read("ostype", DefaultLimit)
		if err != nil || string(snap.Bytes) != "Linux\n" {
			t.Errorf("%v, %v", snap, err)
		}
		_, err = openDir(t, "/proc/sys/kernel", noProc).Read("ostype", 5)
		coded(t, err, CodeTooLarge)
	})
}
