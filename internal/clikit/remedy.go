package clikit

import (
	"os"
	"path/filepath"

	"holdfast/pkg/regfile"
)

// MoveAside is the command that clears a name for what belongs there, and loses nothing. It is for names that only this
// toolkit uses: at any other path may lie what the machine needs there, as /dev/null does.
func MoveAside(path string) string { return MoveTo(path, regfile.Aside(path)) }

// MoveTo is that command with a name that was chosen before.
func MoveTo(path, aside string) string { return "mv -n -- " + Quote(path) + " " + Quote(aside) }

// ListModes is the command that shows who may do what with a directory and, where it can be seen, an entry of it. Of a
// directory that cannot be seen it shows the nearest one above that can.
func ListModes(dir, entry string) string {
	seen := Seen(dir)
	command := "ls -ld -- " + Quote(seen)
	if _, err := os.Lstat(entry); err == nil && entry != seen {
		command += " " + Quote(entry)
	}
	return command
}

// Seen is the path, or the nearest directory above it that can be seen.
func Seen(path string) string {
	for {
		if _, err := os.Lstat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}
