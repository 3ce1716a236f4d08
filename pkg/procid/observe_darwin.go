package procid

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"
)

// system is the scheme of the keys made here.
const system = SchemeDarwin

// blind: macOS hides no process from kill, which says EPERM about those it protects.
func blind() string { return "" }

// examine returns a process and the boot it belongs to. The start is the clock's at that moment; the kernel keeps it.
func examine(pid int) (process, string, error) {
	boot, err := bootText()
	if err != nil {
		return process{}, "", err
	}
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return process{}, "", err
	}
	const zombie = 5 // SZOMB
	start := info.Proc.P_starttime
	return process{
		pid:    int(info.Proc.P_pid),
		start:  moment{int64(start.Sec), int64(start.Usec)},
		zombie: info.Proc.P_stat == zombie,
	}, boot, nil
}

func bootText() (string, error) {
	boot, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return "", err
	}
	if !isUUID(strings.ToLower(boot)) {
		return "", errors.New("kern.bootsessionuuid is no UUID")
	}
	return boot, nil
}
