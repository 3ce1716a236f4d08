// Package offload runs a program in a second process of the same binary, and relays what it says. The first process, whose end a
// shell waits for, touches no file: it ends even when the second one is stuck in a filesystem that does not answer, and cannot
// even be killed.
package offload

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/pkg/regfile"
)

// variable marks the second process. Its value tells how wide the terminals are that the first one has: "1:80,2:0".
const variable = "HOLDFAST_OFFLOADED"

// statusFD is where the second process says its exit status, when everything that it had to say is written.
const statusFD = 3

// goodbye is how long the end of the second process may take before it is left alone.
const goodbye = 500 * time.Millisecond

// The statuses of the first process's own.
const (
	statusBug    = 70
	statusOutput = 74
)

// Width is the width of a terminal of the first process, in the second one: offloaded is false in any other process, and the
// width 0 where the descriptor is no terminal.
func Width(fd int) (width int, offloaded bool) {
	value := os.Getenv(variable)
	if value == "" {
		return 0, false
	}
	for _, part := range strings.Split(value, ",") {
		if text, ok := strings.CutPrefix(part, strconv.Itoa(fd)+":"); ok {
			width, _ = strconv.Atoi(text)
		}
	}
	return width, true
}

// Run does the work in a second process and returns its status; in that process it does the work and never returns. Where no
// second process can be started, without /proc for one, the work is done in this one.
func Run(work func() int) int {
	if os.Getenv(variable) != "" {
		status := work()
		_, _ = unix.Write(statusFD, []byte(strconv.Itoa(status)+"\n"))
		os.Exit(status)
	}
	r := &relay{}
	status, err := r.run()
	if err != nil {
		return work()
	}
	return status
}

// relay is the first process's side.
type relay struct {
	failed error // of writing to standard output
}

func (r *relay) run() (int, error) {
	runtime.LockOSThread() // the second process dies with this thread
	defer runtime.UnlockOSThread()
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	var ends [3][2]*os.File
	for i := range ends {
		if ends[i][0], ends[i][1], err = os.Pipe(); err != nil {
			return 0, err
		}
	}
	c := &exec.Cmd{
		Path: self, Args: os.Args, Env: append(os.Environ(), variable+"="+terminals()),
		Stdin: os.Stdin, Stdout: ends[0][1], Stderr: ends[1][1], ExtraFiles: []*os.File{ends[2][1]},
		SysProcAttr: dieWithParent(),
	}
	if err := c.Start(); err != nil {
		return 0, err
	}
	for _, pipe := range ends {
		pipe[1].Close()
	}
	var copies sync.WaitGroup
	copies.Go(func() { r.copy(1, ends[0][0]) })
	copies.Go(func() { r.copy(2, ends[1][0]) })
	status := said(ends[2][0])
	done := make(chan struct{})
	go func() {
		copies.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(goodbye):
		_ = c.Process.Kill() // it may not go at once, and is not waited for
		ends[0][0].SetReadDeadline(time.Now())
		ends[1][0].SetReadDeadline(time.Now())
		<-done
	}
	return r.status(status), nil
}

// said is the status that the second process says; when it ends without saying one, that is a bug.
func said(f *os.File) int {
	line, _ := bufio.NewReader(f).ReadString('\n')
	status, err := strconv.Atoi(strings.TrimSuffix(line, "\n"))
	if err != nil {
		return statusBug
	}
	return status
}

// status is the exit status: the second process's, unless what it printed could not be delivered.
func (r *relay) status(said int) int {
	if r.failed == nil || errors.Is(r.failed, unix.EPIPE) {
		return said
	}
	fmt.Fprintf(os.Stderr, "%s: standard output: %s\n", filepath.Base(os.Args[0]), regfile.Errno(r.failed))
	return statusOutput
}

// copy relays until the other end is closed, or the deadline has passed and nothing is there any more. When nobody takes what
// is printed, the second process finds its pipe closed.
func (r *relay) copy(to int, from *os.File) {
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			n, err = rest(from, buffer)
		}
		if n > 0 {
			if werr := write(to, buffer[:n]); werr != nil {
				if to == 1 {
					r.failed = werr
				}
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// rest reads what is in a pipe without waiting.
func rest(f *os.File, buffer []byte) (n int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	cerr := raw.Control(func(fd uintptr) { n, err = unix.Read(int(fd), buffer) })
	switch {
	case cerr != nil:
		return 0, cerr
	case err == nil && n == 0:
		return 0, io.EOF
	case err != nil:
		return 0, err
	}
	return n, nil
}

// write writes all of b, past os.Stdout, whose EPIPE would kill the process.
func write(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := unix.Write(fd, b)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, -1)
		case err != nil:
			return err
		default:
			b = b[n:]
		}
	}
	return nil
}

// terminals is the value of the variable.
func terminals() string {
	var parts []string
	for _, fd := range []int{1, 2} {
		width := 0
		if size, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ); err == nil {
			if width = int(size.Col); width == 0 {
				width = 80
			}
		}
		parts = append(parts, fmt.Sprintf("%d:%d", fd, width))
	}
	return strings.Join(parts, ",")
}
