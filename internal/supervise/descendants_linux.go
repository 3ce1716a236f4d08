package supervise

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// descendants are the pids of every process below this one. Zombies are left out: they are only waited for.
func descendants() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	parents := map[int]int{}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if parent, ok := parentOf(pid); ok {
				parents[pid] = parent
			}
		}
	}
	return below(os.Getpid(), parents)
}

// below are the pids whose chain of parents leads to root. A parent may have a higher pid than its child, so the search
// goes on until nothing is added.
func below(root int, parents map[int]int) (found []int) {
	in := map[int]bool{root: true}
	for grown := true; grown; {
		grown = false
		for pid, parent := range parents {
			if in[parent] && !in[pid] {
				in[pid], grown = true, true
				found = append(found, pid)
			}
		}
	}
	return found
}

// parentOf is the parent of a process that is not a zombie.
func parentOf(pid int) (int, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 2 || string(fields[0]) == "Z" || string(fields[0]) == "X" {
		return 0, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	return parent, err == nil
}

// isStopped reports whether the child is stopped now.
func (c *Child) isStopped() bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(c.PID) + "/stat")
	if err != nil {
		select {
		case <-c.exited:
			return false
		default:
			return true // no /proc: go by what wait4 said
		}
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	return len(fields) > 0 && string(fields[0]) == "T"
}

// signalDescendants signals every descendant. The pid is pinned before its parents are looked at again, so that no
// stranger who has got a freed pid is hit. It returns how many it has signalled.
func signalDescendants(sig unix.Signal) (met int) {
	for _, pid := range descendants() {
		fd, err := unix.PidfdOpen(pid, 0)
		if err == unix.ENOSYS && unix.Kill(pid, sig) == nil {
			met++
		}
		if err != nil {
			continue
		}
		if isBelow(pid) && unix.PidfdSendSignal(fd, sig, nil, 0) == nil {
			met++
		}
		unix.Close(fd)
	}
	return met
}

func isBelow(pid int) bool {
	self := os.Getpid()
	for range 1 << 12 { // a chain of parents, which may change while it is followed
		parent, ok := parentOf(pid)
		switch {
		case !ok:
			return false
		case parent == self:
			return true
		case parent <= 1:
			return false
		}
		pid = parent
	}
	return false
}
