//go:build linux

// Package hangfs gives tests a filesystem that stops answering when it is told to, as a network filesystem does whose
// server is gone: every program that asks it anything then waits until it answers again, or is killed.
//
// It is a directory served through FUSE by a process of its own, which is stopped by SIGSTOP. What is mounted over such a
// filesystem hangs with it, and worse: there a server has taken the request, and a program that waits cannot even be killed.
//
// The mount lives in a mount namespace of the test's own, which only the programs that the test's goroutine starts can see.
// When the test ends, however it does, the server is killed with it; the kernel then fails whatever still waits, and the
// mount goes with the last process that could see it.
package hangfs

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

// Program is the name under which a TestMain must register Serve, with testscript.Main.
const Program = "hangfs"

// FS is a mounted filesystem.
type FS struct {
	Dir     string // where it is mounted
	Backing string // the directory it serves, which does not hang: where others are

	t      testing.TB
	server *exec.Cmd
	dead   bool
}

// Mount mounts a filesystem that serves the directory backing, for the rest of the test. The calling goroutine is locked to
// its thread: programs that are to see the mount must be started by it, and it must be the test's own.
func Mount(t testing.TB, backing string) *FS {
	t.Helper()
	testkit.NeedRoot(t)
	_, err := os.Stat("/dev/fuse")
	testkit.Need(t, err == nil, "/dev/fuse")

	testkit.OwnMounts(t)
	f := &FS{Dir: t.TempDir(), Backing: backing, t: t}
	f.server = exec.Command(Program, f.Dir, backing)
	f.server.Stderr = os.Stderr
	f.server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := f.server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.Kill()
		if err := unix.Unmount(f.Dir, unix.MNT_DETACH); err != nil {
			t.Error("unmount:", err)
		}
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal("the server did not begin:", err)
	}
	return f
}

// Over mounts another filesystem over this one, for programs that cannot be killed while this one hangs.
func (f *FS) Over() *FS {
	f.t.Helper()
	return Mount(f.t, f.Dir)
}

// Hang makes the filesystem stop answering, when it returns.
func (f *FS) Hang() {
	f.t.Helper()
	pid := f.server.Process.Pid
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		f.t.Fatal(err)
	}
	// The signal has stopped every thread when the parent may know.
	var info unix.Siginfo
	if err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WNOWAIT, nil); err != nil {
		f.t.Fatal(err)
	}
}

// Answer makes it go on, with what was asked meanwhile first.
func (f *FS) Answer() {
	f.t.Helper()
	if err := unix.Kill(f.server.Process.Pid, unix.SIGCONT); err != nil {
		f.t.Fatal(err)
	}
}

// Kill ends the server: everything that waits for the filesystem fails, and so does whatever is asked later.
func (f *FS) Kill() {
	if !f.dead {
		f.dead = true
		_ = f.server.Process.Kill()
		_ = f.server.Wait()
	}
}

// Serve is the server's program. Arguments: where to mount, and the directory to serve. It never returns while it serves.
func Serve() error {
	root, err := fs.NewLoopbackRoot(os.Args[2])
	if err != nil {
		return err
	}
	noCache := time.Duration(0)
	server, err := fuse.NewServer(fs.NewNodeFS(root, &fs.Options{EntryTimeout: &noCache, AttrTimeout: &noCache}), os.Args[1],
		&fuse.MountOptions{
			FsName: Program, Name: Program,
			DirectMountStrict:    true,
			DisabledCapabilities: fuse.CAP_PASSTHROUGH, // which would read and write without asking
		})
	if err != nil {
		return err
	}
	go server.Serve()
	if err := server.WaitMount(); err != nil {
		return err
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	if err == nil {
		server.Wait()
	}
	return err
}
