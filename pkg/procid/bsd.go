package procid

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// This file is what macOS and FreeBSD keys need and no system call does, so that it is tested on every system.

// moment is a time of microseconds, as these kernels count it.
type moment struct{ sec, usec int64 }

func (m moment) String() string { return fmt.Sprintf("%d.%06d", m.sec, m.usec) }

func (m moment) minus(o moment) moment {
	d := moment{m.sec - o.sec, m.usec - o.usec}
	if d.usec < 0 {
		d.sec, d.usec = d.sec-1, d.usec+1_000_000
	}
	return d
}

// isMoment tells whether a text is one that moment's String writes, of a time that is not negative.
func isMoment(s string) bool {
	sec, usec, ok := strings.Cut(s, ".")
	n, fits := number(sec)
	return ok && fits && strconv.FormatUint(n, 10) == sec && len(usec) == 6 && isDigits(usec)
}

// recognised tells whether a key is one that this package could have made on that system. Another text of the same scheme
// differs from every key there is, which would prove nothing.
func recognised(key Key) bool {
	switch key.Scheme {
	case SchemeDarwin:
		return isMoment(key.Start) && isUUID(strings.ToLower(key.Boot))
	case SchemeFreeBSD:
		return isMoment(key.Start) && isMoment(key.Boot)
	}
	return false
}

// decideBSD is the verdict table of the systems without pid namespaces. FreeBSD's idea of when it was booted moves with
// every step of the clock, so there another boot time is another boot only where no process has the pid and the start; the
// start is counted from the boot and does not move.
func decideBSD(rec Identity, key Key, f facts, local bool) Verdict {
	sameBoot, t := key.Boot == f.Boot, f.Target
	equal := t.Known && t.Start == key.Start && (sameBoot || key.Scheme == SchemeFreeBSD)
	switch {
	case !recognised(key):
		return Verdict{Uncertain, "its start key is not recognised"}
	case f.Unusable != "":
		return Verdict{Uncertain, f.Unusable}
	case equal && t.Zombie:
		return Verdict{Dead, fmt.Sprintf("pid %d is a zombie: it has exited and was not waited for", rec.PID)}
	case equal:
		return Verdict{Live, fmt.Sprintf("pid %d runs, with the recorded start", rec.PID)}
	case !sameBoot && !local, !sameBoot && key.Scheme == SchemeDarwin:
		return decideOtherBoot(rec, f, local)
	case t.Absent && f.Blind != "":
		return Verdict{Uncertain, fmt.Sprintf("pid %d is not seen, but %s", rec.PID, f.Blind)}
	case t.Absent:
		return Verdict{Dead, fmt.Sprintf("no process has pid %d", rec.PID)}
	case !t.Known:
		return Verdict{Uncertain, fmt.Sprintf("pid %d exists, but its start could not be read", rec.PID)}
	}
	return Verdict{Dead, fmt.Sprintf("pid %d was reused: the process that has it now started at another time", rec.PID)}
}

// process is what these kernels tell of one.
type process struct {
	pid    int
	start  moment
	zombie bool
}

// parseKinfo reads the struct kinfo_proc of a 64-bit FreeBSD kernel (the same on amd64 and arm64): its size at 0,
// ki_pid at 72, ki_start at 336, ki_stat at 388.
func parseKinfo(b []byte) (process, error) {
	const size, pid, start, state, zombie = 1088, 72, 336, 388, 5
	order := binary.LittleEndian
	if len(b) != size || order.Uint32(b) != size {
		return process{}, errors.New("the kernel's struct kinfo_proc has an unknown form")
	}
	return process{
		pid:    int(int32(order.Uint32(b[pid:]))),
		start:  moment{int64(order.Uint64(b[start:])), int64(order.Uint64(b[start+8:]))},
		zombie: b[state] == zombie,
	}, nil
}

// blindness says why a FreeBSD kernel may answer "no such process" about one that exists; empty when it does not. read is
// a sysctl; missing is the error of one that this kernel does not have.
func blindness(read func(string) (uint32, error), missing error, root bool) string {
	is := func(name string, want uint32) bool {
		v, err := read(name)
		return err == nil && v == want || errors.Is(err, missing)
	}
	if v, err := read("security.jail.jailed"); err != nil || v != 0 {
		return "this process may be in a jail, which hides those outside"
	}
	for _, policy := range []string{"seeotheruids", "partition", "biba", "mls", "lomac"} {
		if !is("security.mac."+policy+".enabled", 0) {
			return "the MAC policy " + policy + " may hide it"
		}
	}
	if v, err := read("security.bsd.suser_enabled"); root && err == nil && v == 1 {
		return ""
	}
	for _, name := range []string{"security.bsd.see_other_uids", "security.bsd.see_other_gids", "security.bsd.see_jail_proc"} {
		if !is(name, 1) {
			return name + " may hide it"
		}
	}
	return ""
}
