package supervise

import (
	"os"
	"os/signal"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Signals catches what is sent to the wrapper, so that it survives and can pass it on.
type Signals struct {
	caught   chan os.Signal
	terminal bool      // there was one at the start
	gone     time.Time // when it was first missed, with a shell there to tell of that
}

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
	hungUp // the terminal has gone, and others tell the whole group
)

// Catch begins to catch signals. One that was ignored stays ignored, for the child as well.
func Catch() *Signals {
	s := &Signals{caught: make(chan os.Signal, 16), terminal: whereabouts() != noTerminal}
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
// has the terminal's signals already, and a hang-up in any group. A SIGTSTP is Ctrl-Z wherever there is a terminal: by the
// time it is looked at, the shell may have put the group into the background.
func forward(sig unix.Signal, p place) bool {
	switch {
	case sig == unix.SIGTSTP:
		return p == noTerminal || p == hungUp
	case sig == unix.SIGHUP && p == hungUp:
		return false
	}
	return slices.Contains(passed, sig) || slices.Contains(terminal, sig) && p != foreground
}

// place is this process's place now.
func (s *Signals) place() place {
	p := whereabouts()
	if p == noTerminal && s.terminal && s.othersTell() {
		return hungUp
	}
	return p
}

// telling is how long after a terminal has gone its processes are told of that.
const telling = 2 * time.Second

// othersTell reports whether a SIGHUP is now what the shell sends to each of its jobs, or the kernel at the shell's end to the one in
// front. The kernel's own word goes to the session's first process alone. With no shell any more, or long after, somebody has
// sent it to the wrapper.
func (s *Signals) othersTell() bool {
	shell, err := unix.Getsid(0)
	if err != nil || shell == os.Getpid() {
		return false
	}
	if s.gone.IsZero() {
		if unix.Kill(shell, 0) == unix.ESRCH {
			return false
		}
		s.gone = time.Now()
	}
	return time.Since(s.gone) < telling
}

// whereabouts is where this process is, whatever was before.
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
