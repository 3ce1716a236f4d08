package pty

import (
	"os/exec"
	"strconv"
	"testing"
)

// Shell is an interactive bash with job control on a terminal. Its prompt shows the last status.
type Shell struct{ *Terminal }

const prompt = `status=(\d+) ready> `

// Bash starts a shell in dir, with these variables beside the test's own.
func Bash(t testing.TB, dir string, variables ...string) *Shell {
	t.Helper()
	// Without line editing the terminal's own line discipline is at work between the commands too.
	cmd := exec.Command("bash", "--norc", "--noprofile", "--noediting", "-i")
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), append(variables, "PS1=status=$? ready> ", "HISTFILE=")...)
	s := &Shell{Start(t, cmd, 24, 80)}
	s.Prompt()
	return s
}

// Type types a line.
func (s *Shell) Type(line string) {
	s.t.Helper()
	s.Send(line + "\n")
	s.Expect(`\r\n`) // its echo
}

// Prompt waits for the next prompt and returns the status that it shows.
func (s *Shell) Prompt() int {
	s.t.Helper()
	_, status := s.Shown()
	return status
}

// Run types a line and returns what was shown until the next prompt, and the status.
func (s *Shell) Run(line string) (shown string, status int) {
	s.t.Helper()
	s.Type(line)
	return s.Shown()
}

// Shown waits for the next prompt and returns what was shown before it, and the status.
func (s *Shell) Shown() (shown string, status int) {
	s.t.Helper()
	match := s.Expect(`(?s)(.*?)` + prompt)
	status, err := strconv.Atoi(match[2])
	if err != nil {
		s.t.Fatal(err)
	}
	return match[1], status
}
