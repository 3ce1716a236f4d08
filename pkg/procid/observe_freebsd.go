package procid

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// system is the scheme of the keys made here.
const system = SchemeFreeBSD

func blind() string { return blindness(unix.SysctlUint32, unix.ENOENT, os.Geteuid() == 0) }

// examine returns a process, its start counted from the boot, and the time of the boot. The kernel gives the start as a
// time of the clock, which moves together with the time of the boot whenever the clock is stepped; the difference stays.
func examine(pid int) (process, string, error) {
	for range 3 {
		boot, err := bootTime()
		if err != nil {
			return process{}, "", err
		}
		b, err := unix.SysctlRaw("kern.proc.pid", pid)
		if err != nil {
			return process{}, "", err
		}
		p, err := parseKinfo(b)
		if err != nil {
			return process{}, "", err
		}
		if after, err := bootTime(); err != nil || after != boot {
			continue
		}
		p.start = p.start.minus(boot)
		return p, boot.String(), nil
	}
	return process{}, "", errors.New("the clock was stepped again and again")
}

func bootText() (string, error) {
	boot, err := bootTime()
	return boot.String(), err
}

func bootTime() (moment, error) {
	tv, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return moment{}, err
	}
	return moment{int64(tv.Sec), int64(tv.Usec)}, nil
}
