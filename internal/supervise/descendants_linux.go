package supervise

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// strangers are processes below this one that the command did not start, by pid, with their start times: pids are used again. A
// shell that executes the wrapper in its own place leaves its jobs to it.
type strangers map[int]string

// noteStrangers notes everything that is below this process.
func noteStrangers() strangers {
	var info unix.Siginfo
	if unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) == unix.ECHILD {
		return nil // the usual case costs no look at all of /proc
	}
	noted := strangers{}
	for _, pid := range noted.descendants() {
		if fields := statOf(pid); len(fields) > statStart {
			noted[pid] = fields[statStart]
		}
	}
	return noted
}

// has reports whether the process with this /proc/PID/stat is one of them.
func (s strangers) has(pid int, fields []string) bool {
	start, noted := s[pid]
	return noted && len(fields) > statStart && fields[statStart] == start
}

// descendants are the pids of every process below this one, but for strangers and what is below them. Zombies are left out:
// they are only waited for.
func (s strangers) descendants() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	parents := map[int]int{}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if parent, ok := s.parentOf(pid); ok {
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

// parentOf is the parent of a process that has not ended. One whose first thread has ended looks like a zombie, and lives as
// long as another thread does. A stranger is nobody's child.
func (s strangers) parentOf(pid int) (int, bool) {
	fields := statOf(pid)
	if len(fields) <= statThreads || fields[statState] == "X" || fields[statState] == "Z" && fields[statThreads] == "1" {
		return 0, false
	}
	if s.has(pid, fields) {
		return 0, true
	}
	parent, err := strconv.Atoi(fields[statParent])
	return parent, err == nil
}

// Fields of /proc/PID/stat, counted from the state on.
const (
	statState   = 0
	statParent  = 1
	statThreads = 17
	statStart   = 19
)

// statOf is /proc/PID/stat from the state on; nothing when there is no such process.
func statOf(pid int) []string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}

// isStopped reports whether the child is stopped now.
func (c *Child) isStopped() bool {
	if fields := statOf(c.PID); len(fields) > 0 {
		return fields[statState] == "T"
	}
	select {
	case <-c.exited:
		return false
	default:
		return true // no /proc: go by what wait4 said
	}
}

// signalDescendants signals every descendant. The pid is pinned before its parents are looked at again, so that no
// stranger who has got a freed pid is hit. It returns how many it has signalled.
func (s strangers) signalDescendants(sig unix.Signal) (met int) {
	for _, pid := range s.descendants() {
		fd, err := unix.PidfdOpen(pid, 0)
		if err == unix.ENOSYS && unix.Kill(pid, sig) == nil {
			met++
		}
		if err != nil {
			continue
		}
		if s.isBelow(pid) && unix.PidfdSendSignal(fd, sig, nil, 0) == nil {
			met++
		}
		unix.Close(fd)
	}
	return met
}

// isBelow reports whether a process is a descendant.
func (s strangers) isBelow(pid int) bool { return leadsTo(os.Getpid(), pid, s.parentOf) }

// leadsTo reports whether the chain of a process's parents leads to root. It may change while it is followed: when one of them
// has ended its child has another, and the chain is followed from the start again.
func leadsTo(root, pid int, parentOf func(int) (int, bool)) bool {
	at := pid
	for range 1 << 12 {
		parent, ok := parentOf(at)
		switch {
		case ok && parent == root:
			return true
		case ok && parent > 1:
			at = parent
		case !ok && at != pid:
			at = pid
		default:
			return false
		}
	}
	return false
}
