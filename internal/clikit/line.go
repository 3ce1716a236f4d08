package clikit

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

// Line is one line of a terminal that is written over: on standard error for progress, on standard output for a display.
type Line struct {
	fd int

	mu    sync.Mutex
	shown bool
}

// ProgressLine is the call's line on standard error, which shows only when that is a terminal. It is cleared before anything
// else is said or printed.
func (c *Call) ProgressLine() *Line { return &c.progress }

// DisplayLine is a line on standard output, for a verb that is a display when that is a terminal.
func DisplayLine() *Line { return &Line{fd: 1} }

// Live reports whether the line can be written over.
func (l *Line) Live() bool { return IsTerminal(l.fd) }

// Show puts text on the line, cut to the terminal's width. Off a terminal it shows nothing.
func (l *Line) Show(format string, args ...any) {
	if !l.Live() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown = true
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " ")
	l.write("\r\x1b[2K" + Cut(text, l.Room()))
}

// Room is how many characters fit on the line.
func (l *Line) Room() int { return max(Width(l.fd)-1, 0) }

// Cut is text in at most n characters; where it does not fit it ends in an ellipsis.
func Cut(text string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	if n <= 0 {
		return ""
	}
	return string(runes[:n-1]) + "…"
}

// Clear empties the line.
func (l *Line) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown {
		l.write("\r\x1b[2K")
		l.shown = false
	}
}

// End keeps what the line shows and goes to the next one.
func (l *Line) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown {
		l.write("\n")
		l.shown = false
	}
}

func (l *Line) write(text string) {
	f := os.Stderr
	if l.fd == 1 {
		f = os.Stdout
	}
	_, _ = f.WriteString(text)
}
