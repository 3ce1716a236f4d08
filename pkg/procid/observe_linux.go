package procid

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// initialPIDNamespace is the inode of the first pid namespace, a constant of the kernel (PROC_PID_INIT_INO).
const initialPIDNamespace = 0xeffffffc

// maxTicks is the latest start that is believed, 292 years after boot. A time namespace that began after a process shows
// its start as a negative number of nanoseconds taken for a positive one.
const maxTicks = 1 << 63 / (1_000_000_000 / ticksPerSecond)

// ticksPerSecond is the unit of field 22 of /proc/PID/stat, fixed by the kernel's interface to user space.
const ticksPerSecond = 100

// mint makes the start key of this process.
func mint(pid int) (string, error) {
	if err := procIsOurs(); err != nil {
		return "", err
	}
	offset, err := boottimeOffset()
	if err != nil {
		return "", err
	}
	st, err := readStat(strconv.Itoa(pid))
	if err != nil {
		return "", err
	}
	ns, err := pidNamespace("self")
	if err != nil {
		return "", err
	}
	return Key{Ticks: st.ticks - offset, Boot: bootID(), NS: ns}.String(), nil
}

// procIsOurs fails where /proc is missing or belongs to another pid namespace: its numbers would mean other processes.
func procIsOurs() error {
	self, err := os.Readlink("/proc/self")
	if err != nil {
		return fmt.Errorf("/proc is not usable: %w", err)
	}
	if self != strconv.Itoa(os.Getpid()) {
		return errors.New("/proc belongs to another pid namespace")
	}
	return nil
}

// procNamespaceIsOurs is the stricter test, before other pids are looked up: NSpid of ourselves lists one number for
// each namespace from that of /proc down to ours, so that more than one means an outer /proc.
func procNamespaceIsOurs() error {
	if err := procIsOurs(); err != nil {
		return err
	}
	pids, err := nsPids("self")
	if err != nil {
		return err
	}
	if len(pids) != 1 {
		return errors.New("/proc belongs to another pid namespace")
	}
	return nil
}

// boottimeOffset is what our time namespace adds to start times, in ticks (two's complement when negative).
func boottimeOffset() (uint64, error) {
	own, err := os.Readlink("/proc/self/ns/time")
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil // a kernel without time namespaces
	}
	if err != nil {
		return 0, err
	}
	children, err := os.Readlink("/proc/self/ns/time_for_children")
	if err != nil {
		return 0, err
	}
	if own != children {
		return 0, errors.New("the time namespace is not the one whose offsets can be read")
	}
	b, err := os.ReadFile("/proc/self/timens_offsets")
	if err != nil {
		return 0, err
	}
	return parseOffsets(string(b))
}

func parseOffsets(text string) (uint64, error) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] != "boottime" {
			continue
		}
		seconds, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return 0, err
		}
		if fields[2] != "0" {
			return 0, errors.New("the time namespace's offset is not whole seconds")
		}
		return uint64(seconds * ticksPerSecond), nil
	}
	return 0, errors.New("/proc/self/timens_offsets has no boottime line")
}

// bootID is the kernel's boot id, or "?" when the file does not look like the kernel's own.
func bootID() string {
	const dir, file = "/proc/sys/kernel", "/proc/sys/kernel/random/boot_id"
	var kernel, id unix.Stat_t
	if unix.Stat(dir, &kernel) != nil || unix.Stat(file, &id) != nil || kernel.Dev != id.Dev {
		return weakBoot
	}
	b, err := os.ReadFile(file)
	text := strings.TrimSuffix(string(b), "\n")
	if err != nil || !regexp.MustCompile(`^`+uuidPattern+`$`).MatchString(text) {
		return weakBoot
	}
	return text
}

// pidNamespace is the inode of a process's pid namespace.
func pidNamespace(pid string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/"+pid+"/ns/pid", &st); err != nil {
		return 0, fmt.Errorf("/proc/%s/ns/pid: %w", pid, err)
	}
	return st.Ino, nil
}

// stat is what is used of /proc/PID/stat.
type stat struct {
	ticks   uint64 // since boot, as our time namespace shows it
	state   byte
	threads int
}

func (s stat) zombie() bool { return (s.state == 'Z' || s.state == 'X') && s.threads <= 1 }

func readStat(pid string) (stat, error) {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return stat{}, err
	}
	return parseStat(string(b))
}

// parseStat reads the fields after the last ")", of which the state, field 3, is the first: the command name before it may
// hold anything.
func parseStat(text string) (stat, error) {
	const state, threads, start = 0, 20 - 3, 22 - 3
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) <= start || len(fields[state]) != 1 {
		return stat{}, errors.New("/proc/PID/stat has an unknown form")
	}
	n, err := strconv.Atoi(fields[threads])
	if err != nil {
		return stat{}, err
	}
	ticks, err := strconv.ParseUint(fields[start], 10, 64)
	if err != nil {
		return stat{}, err
	}
	if ticks > maxTicks {
		return stat{}, errors.New("its start lies before the beginning of our time namespace")
	}
	return stat{ticks: ticks, state: fields[state][0], threads: n}, nil
}

// observe gathers the facts that decide needs for this record, and no others.
func observe(rec Identity, key Key) facts {
	f := facts{Boot: weakBoot}
	f.Hostname, _ = os.Hostname()
	if key.Scheme != SchemeLinux && key.Scheme != SchemeLegacyTicks {
		return f
	}
	if err := procNamespaceIsOurs(); err != nil {
		f.Unusable = "it cannot be compared: " + err.Error()
		return f
	}
	offset, err := boottimeOffset()
	if err != nil {
		f.Unusable = "it cannot be compared: " + err.Error()
		return f
	}
	if f.NS, err = pidNamespace("self"); err != nil {
		f.Unusable = "it cannot be compared: " + err.Error()
		return f
	}
	f.Boot = bootID()
	if key.Scheme == SchemeLinux && key.NS != f.NS {
		if key.Boot == f.Boot && f.NS == initialPIDNamespace {
			f.Namespaces = findInNamespace(rec.PID, key, offset)
		}
		return f
	}
	f.Target = look(rec.PID, offset)
	return f
}

// look asks the kernel about a pid of our namespace. Only ESRCH proves absence.
func look(pid int, offset uint64) target {
	if pid <= 0 {
		return target{}
	}
	if err := unix.Kill(pid, 0); err == unix.ESRCH {
		return target{Absent: true}
	}
	st, err := readStat(strconv.Itoa(pid))
	if err != nil {
		// It may have ended between the two; ask once more.
		return target{Absent: unix.Kill(pid, 0) == unix.ESRCH}
	}
	return target{Known: true, Ticks: st.ticks - offset, Zombie: st.zombie()}
}

// findInNamespace looks through every process for one with that pid inside that namespace. It is done only when every
// process could be read.
func findInNamespace(pid int, key Key, offset uint64) scan {
	if _, err := readStat("1"); err != nil {
		return scan{} // hidepid: the listing would lack other users' processes
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return scan{}
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		found, zombie, err := matches(e.Name(), pid, key, offset)
		if found {
			return scan{Done: true, Found: true, Zombie: zombie}
		}
		if err != nil && !gone(err) {
			return scan{}
		}
	}
	return scan{Done: true}
}

func matches(entry string, pid int, key Key, offset uint64) (found, zombie bool, err error) {
	st, err := readStat(entry)
	if err != nil || st.ticks-offset != key.Ticks {
		return false, false, err
	}
	ns, err := pidNamespace(entry)
	if errors.Is(err, unix.ENOENT) && st.zombie() {
		return false, false, nil // a zombie has left its namespaces: it is dead whoever it was
	}
	if err != nil || ns != key.NS {
		return false, false, err
	}
	pids, err := nsPids(entry)
	if err != nil {
		return false, false, err
	}
	return pids[len(pids)-1] == pid, st.zombie(), nil
}

func gone(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) }

// nsPids is a process's pid in each namespace from that of /proc down to its own.
func nsPids(pid string) ([]int, error) {
	b, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(b)) {
		rest, ok := strings.CutPrefix(line, "NSpid:")
		if !ok {
			continue
		}
		var pids []int
		for _, field := range strings.Fields(rest) {
			n, err := strconv.Atoi(field)
			if err != nil {
				return nil, err
			}
			pids = append(pids, n)
		}
		if len(pids) > 0 {
			return pids, nil
		}
	}
	return nil, errors.New("/proc/PID/status has no NSpid line")
}
