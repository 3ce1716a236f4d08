package fencetest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// tally says every signal that it gets, and ends with status 3 a while after the first one: time enough for a second one
// to come.
func tally() error {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1)
	fmt.Println("ready")
	var over <-chan time.Time
	for {
		select {
		case sig := <-signals:
			fmt.Println("got", sig)
			if over == nil {
				over = time.After(500 * time.Millisecond)
			}
		case <-over:
			os.Exit(3)
		}
	}
}

// leaderless says that it is ready, and ends its main thread when it is told to; another thread stays until standard input
// ends.
func leaderless() error {
	fmt.Println("ready")
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		return err
	}
	go func() {
		for !leaderGone() {
			time.Sleep(time.Millisecond)
		}
		fmt.Println("gone")
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	_, _, errno := syscall.Syscall(unix.SYS_EXIT, 0, 0, 0)
	return errno
}

// leaderGone reports whether this process's main thread has ended.
func leaderGone() bool {
	b, err := os.ReadFile("/proc/self/stat")
	return err == nil && bytes.Contains(b[bytes.LastIndexByte(b, ')'):], []byte(" Z "))
}
