package procid

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// initialPIDNamespace is the inode of the first pid namespace, a constant of the kernel (PROC_PID_INIT_INO).
const initialPIDNamespace = 0xeffffffc

// maxTicks is the latest start that is believed, 292 years after boot. A time namespace that began after a process shows
// its start as a negative number of nanoseconds taken for a positive one.
const maxTicks = 1 << 63 / (1_000_000_000 / ticksPerSecond)

// ticksPerSecond is the unit of field 22 of /proc/PID/stat, fixed by the kernel's interface to user space.
const ticksPerSecond = 100

// view is what does not change while this process lives: where it stands among boots and namespaces.
type view struct {
	boot   string // "?" when not to be trusted
	ns     uint64 // inode of our pid namespace
	offset uint64 // what our time namespace adds to start times, in ticks
	noKeys error  // why no key can be made of what /proc shows of another process
}

func newView() view {
	v := view{boot: weakBoot}
	if v.noKeys = procNamespaceIsOurs(); v.noKeys != nil {
		return v
	}
	if v.offset, v.noKeys = boottimeOffset(); v.noKeys != nil {
		return v
	}
	if v.ns, v.noKeys = pidNamespace("self"); v.noKeys != nil {
		return v
	}
	v.boot = bootID()
	return v
}

// mint makes a process's start key.
func (v view) mint(pid int) (string, error) {
	if v.noKeys != nil {
		return "", v.noKeys
	}
	st, err := readStat(strconv.Itoa(pid))
	if err != nil {
		return "", err
	}
	return v.key(st), nil
}

func (v view) key(st stat) string {
	return Key{Scheme: SchemeLinux, Ticks: st.ticks - v.offset, Boot: v.boot, NS: v.ns}.String()
}

// started is when a process of this boot started, by this moment's wall clock: the boot's own clock is not set by anybody.
func (v view) started(key Key) (time.Time, bool) {
	if v.noKeys != nil || key.Scheme != SchemeLinux || key.Weak() || key.Boot != v.boot || key.Ticks > maxTicks {
		return time.Time{}, false
	}
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return time.Time{}, false
	}
	const tick = time.Second / ticksPerSecond
	age := time.Duration(now.Nano()) - time.Duration(key.Ticks+v.offset)*tick
	return time.Now().Add(-age), true
}

// candidate asks the kernel about a pid that is to be an owner.
func (v view) candidate(pid int) candidate {
	absent := func() bool { return unix.Kill(pid, 0) == unix.ESRCH }
	c := candidate{NoKeys: v.noKeys}
	if !isPID(pid) {
		return c
	}
	if c.Absent = absent(); c.Absent || v.noKeys != nil {
		return c
	}
	c.First = pid == 1 && v.ns == initialPIDNamespace
	var st stat
	if st, c.Unreadable = readStat(strconv.Itoa(pid)); c.Unreadable == nil {
		c.Leader, c.Unreadable = leader(strconv.Itoa(pid))
	}
	if c.Unreadable != nil {
		c.Absent = absent() // it may have ended between the two
		return c
	}
	c.Zombie, c.Key = st.zombie(), v.key(st)
	return c
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
	b, err := readProc("/proc/self/timens_offsets")
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
	if unix.Stat(dir, &kernel) != nil || unix.Stat(file, &id) != nil || kernel.Dev != id.Dev || isMountPoint(file) {
		return weakBoot
	}
	b, err := readProc(file)
	text := strings.TrimSuffix(string(b), "\n")
	if err != nil || !isUUID(text) {
		return weakBoot
	}
	return text
}

// isMountPoint tells whether something is mounted exactly there, a file of the same filesystem too. Kernels before 5.8 do
// not say.
func isMountPoint(path string) bool {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_TYPE, &st)
	return err == nil && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
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
	b, err := readProc("/proc/" + pid + "/stat")
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
func (v view) observe(rec Identity, key Key) facts {
	f := facts{System: SchemeLinux, Boot: weakBoot}
	if key.Scheme != SchemeLinux && key.Scheme != SchemeLegacyTicks {
		return f
	}
	if key.Boot != v.boot {
		f.Hostname, _ = os.Hostname() // in a key of this boot it means nothing
	}
	if v.noKeys != nil {
		f.Unusable = "it cannot be compared: " + v.noKeys.Error()
		return f
	}
	f.Boot, f.NS = v.boot, v.ns
	if key.Scheme == SchemeLinux && key.NS != f.NS {
		if key.Boot == f.Boot && f.NS == initialPIDNamespace {
			f.Namespaces = findInNamespace(rec.PID, key, v.offset)
		}
		return f
	}
	f.Target = look(rec.PID, v.offset)
	return f
}

// look asks the kernel about a pid of our namespace. Only ESRCH proves absence.
func look(pid int, offset uint64) target {
	if !isPID(pid) {
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

// matches says whether a process of /proc is the one that has this pid in the key's namespace. That need not be its own
// namespace, for an owner may have been recorded from outside.
func matches(entry string, pid int, key Key, offset uint64) (found, zombie bool, err error) {
	st, err := readStat(entry)
	if err != nil || st.ticks-offset != key.Ticks {
		return false, false, err
	}
	above, err := levelsAbove(entry, key.NS)
	if errors.Is(err, unix.ENOENT) && st.zombie() {
		return false, false, nil // a zombie has left its namespaces: it is dead whoever it was
	}
	if err != nil || above < 0 {
		return false, false, err
	}
	pids, err := nsPids(entry)
	if err != nil {
		return false, false, err
	}
	return above < len(pids) && pids[len(pids)-1-above] == pid, st.zombie(), nil
}

// levelsAbove says how far above a process's pid namespace the one with that inode is: 0 when it is its own, -1 when it is
// none of those that enclose it.
func levelsAbove(entry string, inode uint64) (int, error) {
	fd, err := unix.Open("/proc/"+entry+"/ns/pid", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	for level := 0; err == nil; level++ {
		var st unix.Stat_t
		if err = unix.Fstat(fd, &st); err != nil || st.Ino == inode {
			unix.Close(fd)
			return level, err
		}
		parent, failed := unix.IoctlRetInt(fd, unix.NS_GET_PARENT)
		unix.Close(fd)
		if failed == unix.EPERM && st.Ino == initialPIDNamespace {
			return -1, nil // the initial one has none above it
		}
		fd, err = parent, failed
	}
	return 0, err
}

func gone(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) }

// nsPids is a process's pid in each namespace from that of /proc down to its own.
func nsPids(pid string) ([]int, error) { return statusNumbers(pid, "NSpid") }

// leader is the pid of the process to which a process's or thread's number belongs.
func leader(pid string) (int, error) {
	numbers, err := statusNumbers(pid, "Tgid")
	if err != nil {
		return 0, err
	}
	return numbers[0], nil
}

// statusNumbers are the numbers, at least one, on a line of /proc/PID/status.
func statusNumbers(pid, name string) ([]int, error) {
	b, err := readProc("/proc/" + pid + "/status")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(b)) {
		rest, ok := strings.CutPrefix(line, name+":")
		if !ok {
			continue
		}
		var numbers []int
		for _, field := range strings.Fields(rest) {
			n, err := strconv.Atoi(field)
			if err != nil {
				return nil, err
			}
			numbers = append(numbers, n)
		}
		if len(numbers) > 0 {
			return numbers, nil
		}
	}
	return nil, errors.New("/proc/PID/status has no " + name + " line")
}
