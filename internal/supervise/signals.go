package supervise

import (
	"os"
	"os/signal"
	"slices"

	"golang.org/x/sys/unix"
)

// Signals catches what is sent to the wrapper, so that it survives and can pass it on.
type Signals struct{ caught chan os.Signal }

// passed are always for the child; the terminal's are, too, when the terminal has not sent them to the child already.
var (
	passed   = []unix.Signal{unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2}
	terminal = []unix.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGHUP, unix.SIGTSTP}
)

// Catch begins to catch signals. One that was ignored stays ignored, for the child as well.
func Catch() *Signals {
	s := &Signals{caught: make(chan os.Signal, 16)}
	if signal.Ignored(unix.SIGINT) {
		signal.Ignore(unix.SIGQUIT)
	}
	for _, sig := range slices.Concat([]unix.Signal{unix.SIGCONT}, passed, terminal) {
		if !signal.Ignored(sig) {
			signal.Notify(s.caught, sig)
		}
	}
	return s
}

// C gives the signals.
func (s *Signals) C() <-chan os.Signal { return s.caught }

// Ends reports whether a signal ends a wrapper that has no child yet.
func Ends(sig os.Signal) bool {
	s, ok := sig.(unix.Signal)
	return ok && s != unix.SIGCONT && s != unix.SIGTSTP
}

// forward is the decision whether a signal that the wrapper got is passed on. In its terminal's foreground group the child
// has the terminal's signals already.
func forward(sig unix.Signal, foreground bool) bool {
	return slices.Contains(passed, sig) || slices.Contains(terminal, sig) && !foreground
}

// inForeground reports whether this process's group is the foreground group of its terminal; without a terminal it is not.
func inForeground() bool {
	tty, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(tty)
	group, err := unix.IoctlGetInt(tty, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
