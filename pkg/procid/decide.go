package procid

import "fmt"

// facts is what can be seen now about the process on record.
type facts struct {
	System     Scheme // of the keys made here; empty where none are
	Hostname   string
	Boot       string // "?" when not to be trusted
	NS         uint64 // inode of our pid namespace
	Unusable   string // why no key can be compared; empty when keys can be
	Target     target // by pid, in our namespace
	Namespaces scan   // by namespace, where the record names another one
	Blind      string // why an absent target may only be hidden; empty where it cannot be
}

// target is what a pid shows now.
type target struct {
	Absent bool // kill says ESRCH
	Known  bool // ticks and state could be read
	Ticks  uint64
	Start  string // in place of ticks, on macOS and FreeBSD
	Zombie bool   // exited, the last thread of it
}

// scan is the search for a process of another pid namespace.
type scan struct {
	Done   bool // made from the initial namespace, every process readable
	Found  bool // one with that pid, namespace and start
	Zombie bool
}

// decide is the verdict table; it does no I/O.
func decide(rec Identity, key Key, f facts, local bool) Verdict {
	switch key.Scheme {
	case SchemeLinux, SchemeDarwin, SchemeFreeBSD:
		switch {
		case key.Scheme != f.System:
			return Verdict{Uncertain, anotherSystem}
		case key.Scheme == SchemeLinux:
			return decideKey(rec, key, f, local)
		}
		return decideBSD(rec, key, f, local)
	case SchemeLegacyTicks:
		return decideLegacy(rec, key, f)
	case SchemeLegacyPS:
		return Verdict{Uncertain, "its start key is a text of ps, which depends on locale and time zone"}
	}
	return Verdict{Uncertain, "its start key is not recognised"}
}

const anotherSystem = "its start key was made on another operating system"

func decideKey(rec Identity, key Key, f facts, local bool) Verdict {
	if f.Unusable != "" {
		return Verdict{Uncertain, f.Unusable}
	}
	if key.Weak() || f.Boot == weakBoot {
		return decideWeak(rec, key, f)
	}
	if key.Boot != f.Boot {
		return decideOtherBoot(rec, f, local)
	}
	if key.NS != f.NS {
		return decideOtherNamespace(rec, f.Namespaces)
	}
	switch t := f.Target; {
	case t.Absent:
		return Verdict{Dead, fmt.Sprintf("no process has pid %d", rec.PID)}
	case !t.Known:
		return Verdict{Uncertain, fmt.Sprintf("pid %d exists, but its start could not be read", rec.PID)}
	case t.Ticks != key.Ticks:
		return Verdict{Dead, fmt.Sprintf("pid %d was reused: the process that has it now started at another time", rec.PID)}
	case t.Zombie:
		return Verdict{Dead, fmt.Sprintf("pid %d is a zombie: it has exited and was not waited for", rec.PID)}
	}
	return Verdict{Live, fmt.Sprintf("pid %d runs, with the recorded start", rec.PID)}
}

// decideWeak: an unknown boot leaves equality as the only proof there is.
func decideWeak(rec Identity, key Key, f facts) Verdict {
	t := f.Target
	if key.Weak() && key.NS == f.NS && t.Known && t.Ticks == key.Ticks && !t.Zombie {
		return Verdict{Live, fmt.Sprintf("pid %d runs, with the recorded start", rec.PID)}
	}
	return Verdict{Uncertain, "the boot it belongs to is not known"}
}

func decideOtherBoot(rec Identity, f facts, local bool) Verdict {
	if local {
		return Verdict{Dead, "it belongs to another boot, and one kernel at a time mounts this filesystem"}
	}
	if rec.Hostname != f.Hostname {
		return Verdict{OtherHost, "it was recorded on host " + rec.Hostname}
	}
	return Verdict{Uncertain, "it belongs to another boot, and other machines may share this filesystem"}
}

func decideOtherNamespace(rec Identity, s scan) Verdict {
	switch {
	case !s.Done:
		return Verdict{Uncertain, "it runs in another pid namespace, into which this process cannot see"}
	case !s.Found:
		return Verdict{Dead, fmt.Sprintf("no process has pid %d in its pid namespace with the recorded start", rec.PID)}
	case s.Zombie:
		return Verdict{Dead, fmt.Sprintf("pid %d of its pid namespace is a zombie", rec.PID)}
	}
	return Verdict{Live, fmt.Sprintf("pid %d of its pid namespace runs, with the recorded start", rec.PID)}
}

// decideLegacy judges the other implementation's key, which names neither boot nor namespace.
func decideLegacy(rec Identity, key Key, f facts) Verdict {
	if rec.Hostname != f.Hostname {
		return Verdict{OtherHost, "it was recorded on host " + rec.Hostname}
	}
	if f.System != SchemeLinux {
		return Verdict{Uncertain, anotherSystem}
	}
	if f.Unusable != "" {
		return Verdict{Uncertain, f.Unusable}
	}
	const caveat = " (its key names no pid namespace)"
	switch t := f.Target; {
	case t.Absent:
		return Verdict{Dead, fmt.Sprintf("no process has pid %d", rec.PID) + caveat}
	case !t.Known:
		return Verdict{Uncertain, fmt.Sprintf("pid %d exists, but its start could not be read", rec.PID) + caveat}
	case t.Ticks != key.Ticks:
		return Verdict{Dead, fmt.Sprintf("pid %d was reused", rec.PID) + caveat}
	case t.Zombie:
		return Verdict{Dead, fmt.Sprintf("pid %d is a zombie", rec.PID) + caveat}
	}
	return Verdict{Live, fmt.Sprintf("pid %d runs, with the recorded start", rec.PID) + caveat}
}
