// Package pty runs programs on a real pseudo-terminal and types into it.
package pty

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Keys that a terminal turns into signals.
const (
	CtrlC         = "\x03"
	CtrlZ         = "\x1a"
	CtrlBackslash = "\x1c"
)

// Terminal is a pseudo-terminal with a session on it.
type Terminal struct {
	Process *os.Process // the session leader

	t      testing.TB
	master *os.File
	screen *screen
	ended  chan struct{}
	state  *os.ProcessState
}

// Start runs cmd as the leader of a new session on a new terminal of that size. With the test the terminal hangs up, and
// every process of the session is killed.
func Start(t testing.TB, cmd *exec.Cmd, rows, columns int) *Terminal {
	t.Helper()
	master, slave, err := open(rows, columns)
	if err != nil {
		t.Fatal("no pseudo-terminal: ", err)
	}
	defer slave.Close()
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, "TERM=xterm")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		master.Close()
		t.Fatal(err)
	}
	p := &Terminal{Process: cmd.Process, t: t, master: master, screen: newScreen(), ended: make(chan struct{})}
	go p.screen.fill(master)
	go func() {
		_ = cmd.Wait()
		p.state = cmd.ProcessState
		close(p.ended)
	}()
	t.Cleanup(p.close)
	return p
}

// open allocates a terminal that has no session yet.
func open(rows, columns int) (master, slave *os.File, err error) {
	// Non-blocking, so that Close ends a Read and hangs up at once.
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	master = os.NewFile(uintptr(fd), "/dev/ptmx")
	defer func() {
		if err != nil {
			master.Close()
		}
	}()
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, fmt.Errorf("unlock: %w", err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, nil, fmt.Errorf("number: %w", err)
	}
	if err := resize(fd, rows, columns); err != nil {
		return nil, nil, fmt.Errorf("size: %w", err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	return master, slave, err
}

func resize(fd, rows, columns int) error {
	return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: uint16(columns)})
}

// Send types keys.
func (p *Terminal) Send(keys string) {
	p.t.Helper()
	if _, err := p.master.WriteString(keys); err != nil {
		p.t.Fatal("typing: ", err)
	}
}

// Expect waits until what the terminal was sent after the last Expect matches the pattern, and returns the match and its
// groups.
func (p *Terminal) Expect(pattern string) []string {
	p.t.Helper()
	match, err := p.screen.expect(pattern)
	if err != nil {
		p.t.Fatalf("%v\non the terminal: %q", err, p.All())
	}
	return match
}

// Drain waits until everything that was written has been collected, after the last program on the terminal has ended.
func (p *Terminal) Drain() {
	p.t.Helper()
	if !p.screen.drained() {
		p.t.Fatalf("a program still has the terminal open\non the terminal: %q", p.All())
	}
}

// All is everything that the terminal was ever sent.
func (p *Terminal) All() string { return p.screen.all() }

// Resize changes the window; the terminal tells its foreground group.
func (p *Terminal) Resize(rows, columns int) {
	p.t.Helper()
	p.control(func(fd int) error { return resize(fd, rows, columns) })
}

// Foreground is the terminal's foreground process group.
func (p *Terminal) Foreground() (group int) {
	p.t.Helper()
	p.control(func(fd int) (err error) {
		group, err = unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		return err
	})
	return group
}

// control uses the master's descriptor without taking it out of the poller.
func (p *Terminal) control(f func(fd int) error) {
	p.t.Helper()
	conn, err := p.master.SyscallConn()
	if err != nil {
		p.t.Fatal(err)
	}
	var failed error
	if err := conn.Control(func(fd uintptr) { failed = f(int(fd)) }); err != nil || failed != nil {
		p.t.Fatal(err, failed)
	}
}

// HangUp closes the terminal, as when its window is closed.
func (p *Terminal) HangUp() { p.master.Close() }

// Wait waits for the session leader's end and returns its exit status, 128 + N after signal N.
func (p *Terminal) Wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-after():
		p.t.Fatalf("the program has not ended\non the terminal: %q", p.All())
	}
	ws := p.state.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// close ends everything that the session started and did not set apart.
func (p *Terminal) close() {
	for _, pid := range session(p.Process.Pid) {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	p.master.Close()
	<-p.ended
	if p.t.Failed() {
		p.t.Logf("on the terminal: %s", strings.ReplaceAll(p.All(), "\x1b", "␛"))
	}
}
