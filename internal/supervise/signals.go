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
	terminal = []unix.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGHUP}
)

// place is where this process is as its terminal sees it.
type place int

const (
	noTerminal place = iota
	background
	foreground
)

// Catch begins to catch signals. One that was ignored stays ignored, for the child as well.
func Catch() *Signals {
	s := &Signals{caught: make(chan os.Signal, 16)}
	if signal.Ignored(unix.SIGINT) {
		signal.Ignore(unix.SIGQUIT)
	}
	signal.Notify(s.caught, unix.SIGPIPE) // else a word to a closed standard error would end the wrapper
	for _, sig := range slices.Concat([]unix.Signal{unix.SIGCONT, unix.SIGTSTP}, passed, terminal) {
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
	return ok && (slices.Contains(passed, s) || slices.Contains(terminal, s))
}

// Arrived are the signals that have come and that nobody has taken yet. What the runtime has of them counts: it gives out all
// that it has before a Stop of any channel returns.
func (s *Signals) Arrived() (all []unix.Signal) {
	out := make(chan os.Signal, 1)
	signal.Notify(out, unix.SIGPIPE)
	signal.Stop(out)
	for {
		select {
		case sig := <-s.caught:
			all = append(all, sig.(unix.Signal))
		default:
			return all
		}
	}
}

// Suspend does with a wrapper that has no child yet what Ctrl-Z does with other programs, when that is the signal. It
// returns when somebody has continued it. SIGTTOU is not caught, and stops like an uncaught SIGTSTP: not where no shell is
// there to continue.
func Suspend(sig os.Signal) {
	if sig == unix.SIGTSTP {
		_ = unix.Kill(os.Getpid(), unix.SIGTTOU)
	}
}

// forward is the decision whether a signal that the wrapper got is passed on. In its terminal's foreground group the child
// has the terminal's signals already. A SIGTSTP is Ctrl-Z wherever there is a terminal: by the time it is looked at, the
// shell may have put the group into the background.
func forward(sig unix.Signal, p place) bool {
	if sig == unix.SIGTSTP {
		return p == noTerminal
	}
	return slices.Contains(passed, sig) || slices.Contains(terminal, sig) && p != foreground
}

// whereabouts is this process's place now.
func whereabouts() place {
	tty, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return noTerminal
	}
	defer unix.Close(tty)
	if group, err := unix.IoctlGetInt(tty, unix.TIOCGPGRP); err != nil || group != unix.Getpgrp() {
		return background
	}
	return foreground
}
