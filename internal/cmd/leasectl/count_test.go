package leasectl_test

import (
	"fmt"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// counted are the signals that the child counts. One that it is started with ignored stays ignored, as in a shell; SIGQUIT
// goes with SIGINT, since the Go runtime tells only about that one.
var counted = []unix.Signal{
	unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH, unix.SIGCONT,
}

// countSignals is the child: it appends "ready PID" to the file LOG and then a line for each signal. It ends with status
// 7 when there is a file LOG.end.
func countSignals() {
	log, err := os.OpenFile(os.Args[1], os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		panic(err)
	}
	caught := make(chan os.Signal, 100)
	for _, s := range counted {
		if !signal.Ignored(s) && !(s == unix.SIGQUIT && signal.Ignored(unix.SIGINT)) {
			signal.Notify(caught, s)
		}
	}
	fmt.Fprintf(log, "ready %d\n", os.Getpid())
	for {
		select {
		case s := <-caught:
			fmt.Fprintln(log, unix.SignalName(s.(unix.Signal)))
		case <-time.After(10 * time.Millisecond):
			if _, err := os.Stat(os.Args[1] + ".end"); err == nil {
				os.Exit(7)
			}
		}
	}
}
