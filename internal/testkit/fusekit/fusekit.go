//go:build linux

// Package fusekit gives tests a filesystem that lacks what they say: hard links, rename without replacing, kernel locks.
// It serves a directory through FUSE, and a hook sees each operation first: it may answer in the filesystem's place, with
// any errno, or hold the operation up.
//
// The mount lives in a mount namespace of the test's own, which only the programs that the test's goroutine starts can
// see. So nothing is left mounted whatever becomes of the test.
package fusekit

import (
	"cmp"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

// Options say what the filesystem cannot do. An errno of 0 leaves the feature as it is.
type Options struct {
	Link        syscall.Errno // the answer to making a hard link; FAT says EPERM
	RenameFlags syscall.Errno // the answer to a rename with a flag, as without replacing
	Lock        syscall.Errno // the answer to flock
	Hook        Hook
	Backing     string // a directory to serve, as another mount may; empty is one of its own

	// Fold makes a filesystem on which names are one when they fold to the same, as where case does not count: whatever name
	// is looked up finds the one that is there.
	Fold func(name string) string
}

// Hook is told an operation before it happens, with the base name of the file it is about; the new one for a rename or a
// link. An errno other than 0 is the operation's answer, and it does not happen. The hook may wait, and then the
// program that asked waits; it is called from many goroutines at once.
type Hook func(op Op, name string) syscall.Errno

// Op is a FUSE operation that changes something, or opens, reads or locks a file.
type Op string

// The operations.
const (
	Lookup      Op = "lookup"
	GetAttr     Op = "getattr"
	SetAttr     Op = "setattr" // chmod, chown, truncate
	Create      Op = "create"
	Open        Op = "open"
	Read        Op = "read"
	Write       Op = "write"
	Fsync       Op = "fsync" // fdatasync as well
	FsyncDir    Op = "fsyncdir"
	Rename      Op = "rename"
	RenameFlags Op = "rename-flags"
	Link        Op = "link"
	Unlink      Op = "unlink"
	Lock        Op = "lock"
)

// FS is a mounted filesystem.
type FS struct {
	Dir     string // where it is mounted
	Backing string // the directory it serves, for planting and looking past it
}

// Mount mounts a filesystem, an empty one unless it is said what to serve, for the rest of the test, which is skipped where that cannot be done. The calling
// goroutine is locked to its thread: programs must be started by it, and it must be the test's own.
//
// A program must not be started with the mount as exec.Cmd.Dir, but change to it by itself ("env -C DIR"): a fork holds
// up what the server needs, until the new program runs, and would wait for the server's answer.
func Mount(t *testing.T, opts Options) *FS {
	t.Helper()
	testkit.NeedRoot(t)
	_, err := os.Stat("/dev/fuse")
	testkit.Need(t, err == nil, "/dev/fuse")

	testkit.OwnMounts(t)
	f := &FS{Dir: t.TempDir(), Backing: opts.Backing}
	if f.Backing == "" {
		f.Backing = t.TempDir()
	}
	root, err := fs.NewLoopbackRoot(f.Backing)
	if err != nil {
		t.Fatal(err)
	}
	noCache := time.Duration(0)
	nodes := fs.NewNodeFS(root, &fs.Options{EntryTimeout: &noCache, AttrTimeout: &noCache})
	// What forks meanwhile would have the server's descriptor, which is opened without close-on-exec.
	syscall.ForkLock.RLock()
	server, err := fuse.NewServer(newInterceptor(nodes, opts, f.Backing), f.Dir, &fuse.MountOptions{
		FsName: "fusekit", Name: "fusekit",
		DirectMountStrict:    true,
		EnableLocks:          opts.Lock != 0,
		DisableXAttrs:        true,
		DisabledCapabilities: fuse.CAP_PASSTHROUGH, // which would read and write past the hook
	})
	closeErr := closeOnExec()
	syscall.ForkLock.RUnlock()
	if err := cmp.Or(err, closeErr); err != nil {
		t.Fatal("mount:", err)
	}
	go server.Serve()
	t.Cleanup(func() {
		// Lazily: a program that the test gave up on may still have a file open.
		if err := unix.Unmount(f.Dir, unix.MNT_DETACH); err != nil {
			t.Error("unmount:", err)
		}
	})
	if err := server.WaitMount(); err != nil {
		t.Fatal("mount:", err)
	}
	return f
}

// closeOnExec keeps the server's descriptor from the programs that the test starts: one that had it would keep the
// filesystem alive, and unanswered, after the server is gone.
func closeOnExec() error {
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		return err
	}
	for _, link := range links {
		if target, err := os.Readlink(link); err != nil || !strings.HasPrefix(target, "/dev/fuse") {
			continue
		}
		fd, err := strconv.Atoi(filepath.Base(link))
		if err != nil {
			return err
		}
		unix.CloseOnExec(fd)
	}
	return nil
}
