//go:build linux

package holdfast_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

// kind is something that may lie where a file is expected.
type kind struct {
	name  string
	word  string                                                           // as refusals name it
	plant func(t *testing.T, path string) (undisturbed func(t *testing.T)) // the check is nil where looking suffices
}

// kinds are all that a test can make. A FIFO comes with peers too: a peer that waits for its other end is woken when
// anybody opens that end, so it tells whether the FIFO was opened.
var kinds = []kind{
	{"fifo", "fifo", plainly(func(path string) error { return unix.Mkfifo(path, 0o666) })},
	{"fifo with a waiting writer", "fifo", waiting(unix.O_WRONLY)},
	{"fifo with a waiting reader", "fifo", waiting(unix.O_RDONLY)},
	{"fifo with bytes in it", "fifo", filledFIFO},
	{"socket", "socket", plainly(bindSocket)},
	{"character device", "char-device", func(t *testing.T, path string) func(*testing.T) {
		testkit.NeedRoot(t)
		must(t, unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5)))) // endless zeros
		return nil
	}},
	{"directory", "directory", plainly(func(path string) error { return os.Mkdir(path, 0o755) })},
	{"symlink to a regular file", "symlink", func(t *testing.T, path string) func(*testing.T) {
		target := filepath.Join(t.TempDir(), "target")
		must(t, os.WriteFile(target, []byte(heldLease()), 0o666))
		must(t, os.Symlink(target, path))
		check := untouched(t, filepath.Dir(target))
		return func(*testing.T) { check("following the symlink") }
	}},
	{"dangling symlink", "symlink", plainly(func(path string) error { return os.Symlink("nowhere", path) })},
	{"symlink loop", "symlink", plainly(func(path string) error { return os.Symlink(filepath.Base(path), path) })},
}

func plainly(plant func(path string) error) func(*testing.T, string) func(*testing.T) {
	return func(t *testing.T, path string) func(*testing.T) {
		t.Helper()
		must(t, plant(path))
		return nil
	}
}

// bindSocket makes a socket that nobody serves. It is bound by a short name: a socket's path is at most 107 bytes long.
func bindSocket(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Bind(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))})
}

// waiting makes a FIFO and opens one end of it, which waits for the other end for as long as nobody opens that.
func waiting(access int) func(*testing.T, string) func(*testing.T) {
	return func(t *testing.T, path string) func(*testing.T) {
		t.Helper()
		must(t, unix.Mkfifo(path, 0o666))
		// Its other name serves to find it again when the first one has gone.
		other := filepath.Join(t.TempDir(), "fifo")
		must(t, os.Link(path, other))
		woken := make(chan struct{})
		go func() {
			fd, err := unix.Open(other, access|unix.O_CLOEXEC, 0)
			close(woken)
			if err == nil {
				unix.Close(fd)
			}
		}()
		t.Cleanup(func() {
			for {
				fd, err := unix.Open(other, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
				if err == nil {
					defer unix.Close(fd)
				}
				select {
				case <-woken:
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
		return func(t *testing.T) {
			t.Helper()
			select {
			case <-woken:
				t.Error("the FIFO was opened")
			case <-time.After(time.Millisecond):
			}
		}
	}
}

// filledFIFO makes a FIFO with both ends open and bytes in it, which must stay there.
func filledFIFO(t *testing.T, path string) func(*testing.T) {
	t.Helper()
	must(t, unix.Mkfifo(path, 0o666))
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	text := heldLease()
	_, err = unix.Write(fd, []byte(text))
	must(t, err)
	return func(t *testing.T) {
		t.Helper()
		if n, err := unix.IoctlGetInt(fd, unix.TIOCINQ); err != nil || n != len(text) {
			t.Errorf("%d of %d bytes are left in the FIFO (%v)", n, len(text), err)
		}
	}
}

// beside are the files of a lease, by suffix.
var beside = map[string]string{"lock": "", "claim": ".mutex", "stage": ".stage", "journal": ".journal"}

// mutations begin with removing a stray stage, whatever its kind, unless it is a directory.
var mutations = []string{"acquire", "take over", "renew", "release"}

// verb is one way to run leasectl.
type verb struct {
	name   string
	argv   []string
	lease  func() string // what the lock holds before
	looks  []string      // which of the files it examines, and refuses when they are not regular
	status int           // where it does not look, or nothing is wrong
	code   string
}

// claimWait is how long a claim is waited for.
const claimWait = 5 * time.Second

func none() string { return "" }

var verbs = []verb{
	{"acquire", []string{"acquire"}, none, []string{"lock", "claim", "journal"}, 0, "acquired"},
	{"take over", []string{"acquire", "--take-over"}, expiredLease, []string{"lock", "claim", "journal"}, 0, "acquired"},
	{"renew", []string{"renew", "--holder", plantedHolder}, heldLease, []string{"lock", "claim", "journal"}, 0, "renewed"},
	{"release", []string{"release", "--holder", plantedHolder}, heldLease, []string{"lock", "claim", "journal"}, 0, "released"},
	{"status", []string{"status"}, heldLease, []string{"lock", "claim", "journal"}, 0, "held"},
	{"verify", []string{"verify", "--holder", plantedHolder}, heldLease, []string{"lock"}, 0, "holds"},
	{"list", []string{"list"}, heldLease, []string{"lock", "claim", "journal"}, 0, "held"},
	{"history", []string{"history"}, heldLease, []string{"journal"}, 0, "entry"},
	{"claim inspect", []string{"claim", "inspect"}, heldLease, []string{"claim"}, 0, "absent"},
	{"claim clear", []string{"claim", "clear", "--token", "T", "--force"}, heldLease, []string{"claim"}, 1, "absent"},
	{"set aside", []string{"set-aside", "--fingerprint", "sha256:0"}, none, []string{"lock", "journal"}, 1, "fingerprint-mismatch"},
}

// TestEveryKindAtEveryFile runs every verb over everything that is no regular file, at each of the files of a lease: it
// is named at once, and nothing is opened, replaced or removed; but a stray stage is removed by the next mutation.
func TestEveryKindAtEveryFile(t *testing.T) {
	for _, k := range kinds {
		for place, suffix := range beside {
			for _, v := range verbs {
				t.Run(k.name+" at the "+place+"/"+v.name, func(t *testing.T) {
					t.Parallel()
					fleet, lock := fleetWith(t, v.lease())
					path := lock + suffix
					must(t, os.RemoveAll(path))
					undisturbed := k.plant(t, path)
					check := untouched(t, fleet)
					started := time.Now()

					a := ask(t, fleet, append([]string{"leasectl"}, v.argv...)...)

					if waited := time.Since(started); waited >= claimWait {
						t.Errorf("it took %s: what is no claim is not waited for", waited)
					}
					switch {
					case refuses(v, place, k.word):
						a.is(65, "not-regular").has("kind", k.word, "path", filepath.Join("state", filepath.Base(path)))
						check(v.name)
					case slices.Contains(mutations, v.name):
						a.is(v.status, v.code)
						nothingLeft(t, lock)
					default:
						a.is(v.status, v.code)
						if place == "lock" && v.name == "history" {
							a.has("unconfirmed", "true")
						}
						if place == "stage" && (v.name == "status" || v.name == "list") {
							a.has("stage.kind", k.word)
						}
						check(v.name)
					}
					if undisturbed != nil {
						undisturbed(t)
					}
				})
			}
		}
	}
}

// refuses tells whether a verb has to refuse what lies at a place. A directory is nobody's stage: whoever would remove or
// report one refuses it.
func refuses(v verb, place, word string) bool {
	if place == "stage" {
		return word == "directory" && (slices.Contains(mutations, v.name) || v.name == "status" || v.name == "list")
	}
	return slices.Contains(v.looks, place)
}

// TestSetAsideMeetsEveryKindAtTheClaim is the case in which set-aside gets as far as the claim: there is a broken file, and
// its fingerprint is right.
func TestSetAsideMeetsEveryKindAtTheClaim(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			fleet, lock := fleetWith(t, "{")
			broken := ask(t, fleet, "leasectl", "status").is(65, "corrupt")
			undisturbed := k.plant(t, lock+".mutex")
			check := untouched(t, fleet)
			broken.follow(fleet).is(65, "not-regular").has("kind", k.word, "path", "state/orchestrator.lock.mutex")
			check("set-aside")
			if undisturbed != nil {
				undisturbed(t)
			}
		})
	}
}

// TestEveryKindInPlaceOfTheDirectory puts everything that is no directory where the state directory belongs. Nothing is
// created in its place.
func TestEveryKindInPlaceOfTheDirectory(t *testing.T) {
	all := append(slices.Clone(kinds), kind{"regular file", "regular", plainly(func(path string) error {
		return os.WriteFile(path, []byte("not a directory\n"), 0o644)
	})})
	for _, k := range all {
		if k.word == "directory" {
			continue
		}
		for _, v := range verbs {
			t.Run(k.name+"/"+v.name, func(t *testing.T) {
				t.Parallel()
				fleet := t.TempDir()
				undisturbed := k.plant(t, filepath.Join(fleet, "state"))
				check := untouched(t, fleet)
				word := k.word
				if k.name == "symlink to a regular file" {
					word = "regular" // that is where it leads, and what is wrong with it
				}
				a := ask(t, fleet, append([]string{"leasectl"}, v.argv...)...)
				a.is(74, "directory-invalid").has("kind", word, "path", "state", "remedy", "mv -n -- state state.aside")
				check(v.name)
				if undisturbed != nil {
					undisturbed(t)
				}
			})
		}
	}
}

// TestStateMayBeASymlinkToADirectory: only the last component of a file's own path is never followed.
func TestStateMayBeASymlinkToADirectory(t *testing.T) {
	for _, v := range verbs {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			elsewhere, lock := fleetWith(t, v.lease())
			fleet := t.TempDir()
			must(t, os.Symlink(filepath.Join(elsewhere, "state"), filepath.Join(fleet, "state")))
			ask(t, fleet, append([]string{"leasectl"}, v.argv...)...).is(v.status, v.code)
			nothingLeft(t, lock)
		})
	}
}

// TestSocketWithAListenerIsNotConnectedTo is a socket that somebody serves: looking at it is no connection.
func TestSocketWithAListenerIsNotConnectedTo(t *testing.T) {
	fleet, lock := fleetWith(t, "")
	t.Chdir(filepath.Dir(lock))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Base(lock), Net: "unix"})
	must(t, err)
	defer l.Close()
	ask(t, fleet, "leasectl", "status").is(65, "not-regular").has("kind", "socket")
	must(t, l.SetDeadline(time.Now()))
	if c, err := l.Accept(); err == nil || !strings.Contains(err.Error(), "timeout") {
		t.Errorf("something connected: %v, %v", c, err)
	}
}
