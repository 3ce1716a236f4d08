package supervise

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

// TestMain puts this binary on PATH as the wrappers of the tests: a process that waits for every child cannot be the one
// that the tests run in.
func TestMain(m *testing.M) {
	Jump()
	// The race detector makes every process sleep for a second at its end unless it is told not to.
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	testscript.Main(testkit.Wide{M: m}, map[string]func(){
		"end-at-ready": endAtReady,
		"run-to-end":   runToEnd,
		"stale-stop":   staleStop,
		"headless":     headless,
		"held":         held,
		"starved":      starved,
		"early":        early,
		"late":         late,

		"elsewhere":        elsewhere,
		"elsewhere-parent": elsewhereParent,
	})
}

// start starts a command or panics.
func start(argv []string) *Child {
	child, err := Start(Command{Argv: argv, Env: os.Environ()})
	if err != nil {
		panic(err)
	}
	return child
}

// endAtReady GRACE COMMAND…: starts the command, waits until there is a file "ready", and ends it with all its descendants.
// It prints what it notes, how many are left, and how many children it still has to wait for.
func endAtReady() {
	grace, err := time.ParseDuration(os.Args[1])
	if err != nil {
		panic(err)
	}
	child := start(os.Args[2:])
	for {
		if _, err := os.Stat("ready"); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	left := child.End(grace, func(event string, n int) { fmt.Println(event, n > 0) })
	var info unix.Siginfo
	waited := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	fmt.Println("left", left, waited == unix.ECHILD)
}

// runToEnd COMMAND…: runs the command as a wrapper does, with nothing to hold, and prints the result.
func runToEnd() {
	signals := Catch()
	child := start(os.Args[1:])
	r := child.Run(signals, Hold{Check: func() {}})
	fmt.Println(r.Status, int(r.Signal), r.Leftover)
}

// staleStop: a child is said to have stopped, and runs; it ends by itself.
func staleStop() {
	signals := Catch()
	child := start([]string{"sleep", "0.2"})
	child.stopped <- unix.SIGTSTP
	fmt.Println(child.Run(signals, Hold{Check: func() {}}).Status)
}

// The first goroutine is on the first thread until it is first scheduled anew.
func init() {
	if filepath.Base(os.Args[0]) == "headless" {
		runtime.LockOSThread()
	}
}

// headless goes on without its first thread, which ends, and leaves a file "ready" when it has.
func headless() {
	go func() {
		for {
			if stat := statOf(os.Getpid()); stat[statState] == "Z" {
				_ = os.WriteFile("ready", nil, 0o666)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	_, _, _ = unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
}

// starved starts a command, and then a trampoline for it, as a user who may not have another process.
func starved() {
	var threads sync.WaitGroup
	for range 20 { // of the runtime, which ends a program that cannot have one
		threads.Go(func() {
			runtime.LockOSThread()
			_ = unix.Nanosleep(&unix.Timespec{Nsec: 1e7}, nil)
			runtime.UnlockOSThread()
		})
	}
	threads.Wait()
	if err := testkit.Become(testkit.Nobody); err != nil {
		panic(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: 1, Max: 1}); err != nil {
		panic(err)
	}
	c := Command{Argv: []string{"true"}, Env: os.Environ()}
	_, err := Start(c)
	_, held := StartWaiting(c, "")
	for _, err := range []error{err, held} {
		var failed *StartError
		fmt.Println(errors.As(err, &failed) && failed.Status == 125 && failed.ErrorCode() == "io", err)
	}
}

// early SIGNAL: the wrapper alone gets the signal, before there is a child, which would sleep for a while. It prints the result.
func early() {
	signals := Catch()
	runtime.LockOSThread()
	if err := unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SignalNum(os.Args[1])); err != nil {
		panic(err)
	}
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	child := start([]string{"sleep", "3"})
	fmt.Println("status", child.Run(signals, Hold{Check: func() {}}).Status)
}
