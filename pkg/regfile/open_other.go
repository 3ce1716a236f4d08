//go:build !linux

package regfile

import "golang.org/x/sys/unix"

const openDirFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC

// openHandle does not exist here: see openCompared.
func (d *Dir) openHandle(string, int) (*File, error) { return nil, errNoProc }
