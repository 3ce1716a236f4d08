//go:build darwin || freebsd

package procid

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// view is what does not change while this process lives. The boot is not part of it: on FreeBSD its text may change.
type view struct{ blind string }

func newView() view { return view{blind: blind()} }

func (view) started(Key) (time.Time, bool) { return time.Time{}, false }

// mint makes a process's start key.
func (view) mint(pid int) (string, error) {
	p, boot, err := examine(pid)
	if err != nil {
		return "", err
	}
	return keyOn(p, boot), nil
}

func keyOn(p process, boot string) string {
	return Key{Scheme: system, Start: p.start.String(), Boot: boot}.String()
}

func (v view) candidate(pid int) candidate {
	if !isPID(pid) {
		return candidate{}
	}
	c := candidate{First: pid == 1}
	if absent(pid) {
		if c.Absent = v.blind == ""; !c.Absent {
			c.Unreadable = errors.New("it is not seen, but " + v.blind)
		}
		return c
	}
	p, boot, err := examine(pid)
	if err != nil {
		c.Absent, c.Unreadable = absent(pid) && v.blind == "", err // it may have ended between the two
		return c
	}
	c.Leader, c.Zombie, c.Key = p.pid, p.zombie, keyOn(p, boot)
	return c
}

func (v view) observe(rec Identity, key Key) facts {
	f := facts{System: system, Blind: v.blind}
	f.Hostname, _ = os.Hostname()
	if key.Scheme != system {
		return f
	}
	var err error
	if f.Boot, err = bootText(); err != nil {
		f.Unusable = fmt.Sprintf("it cannot be compared: %v", err)
		return f
	}
	if !isPID(rec.PID) {
		return f
	}
	if absent(rec.PID) {
		f.Target.Absent = true
		return f
	}
	p, boot, err := examine(rec.PID)
	if err != nil {
		f.Target.Absent = absent(rec.PID) // it may have ended between the two
		return f
	}
	f.Boot = boot
	f.Target = target{Known: true, Start: p.start.String(), Zombie: p.zombie}
	return f
}

// absent asks the kernel whether no process has the pid. Only ESRCH says so, and only where nothing is hidden.
func absent(pid int) bool { return unix.Kill(pid, 0) == unix.ESRCH }
