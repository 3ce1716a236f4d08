package procid

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"unsafe"
)

const (
	darwinKey  = "darwin:1700000000.000123@5F9A0B1C-0000-4000-8000-00000000000A"
	freebsdKey = "freebsd:35.000123@1690000000.500000"
)

// The rows of the verdict table that these systems have. They have no pid namespaces, and no weak keys.
func TestBSDVerdicts(t *testing.T) {
	for _, s := range []struct{ key, otherBoot, otherStart string }{
		{darwinKey, strings.Replace(darwinKey, "@5F", "@4F", 1), "1700000000.000124"},
		{freebsdKey, strings.Replace(freebsdKey, "@16", "@17", 1), "35.000124"},
	} {
		key := ParseKey(s.key)
		freebsd := key.Scheme == SchemeFreeBSD
		here := func(target target) facts {
			return facts{System: key.Scheme, Hostname: "here", Boot: key.Boot, Target: target}
		}
		blind := func(target target) facts { f := here(target); f.Blind = "it may be hidden"; return f }
		runs, zombie := target{Known: true, Start: key.Start}, target{Known: true, Start: key.Start, Zombie: true}
		reused, gone, hidden := target{Known: true, Start: s.otherStart}, target{Absent: true}, target{}
		// A start that is counted from the boot outweighs a boot time that has moved.
		moved := Dead
		if freebsd {
			moved = Live
		}
		unlessBlind := Dead
		if freebsd {
			unlessBlind = Uncertain
		}
		for _, c := range []struct {
			row   string
			key   string
			host  string
			facts facts
			local bool
			want  Word
		}{
			{"schemes differ", "linux:500", "here", here(gone), true, Uncertain},
			{"schemes differ", keyA, "here", here(gone), true, Uncertain},
			{"legacy, other hostname", "linux:500", "there", here(gone), true, OtherHost},
			{"not recognised: a boot of another form", string(key.Scheme) + ":" + key.Start + "@x", "here", here(gone), true, Uncertain},
			{"not recognised: a start of another form", strings.Replace(s.key, "0.", "0.0", 1), "here", here(gone), true, Uncertain},
			{"not recognised: a start of another form", strings.Replace(s.key, ":", ":0", 1), "here", here(reused), true, Uncertain},
			{"unreadable now and pid not proven absent", s.key, "here", here(hidden), true, Uncertain},
			{"no key can be compared", s.key, "here", func() facts { f := here(gone); f.Unusable = "why"; return f }(), true, Uncertain},
			{"same boot: key equal", s.key, "there", here(runs), false, Live},
			{"same boot: a zombie", s.key, "here", here(zombie), false, Dead},
			{"same boot: ESRCH", s.key, "there", here(gone), false, Dead},
			{"same boot: ESRCH where processes are hidden", s.key, "here", blind(gone), true, Uncertain},
			{"same boot: start differs", s.key, "here", here(reused), false, Dead},
			{"same boot: start differs where processes are hidden", s.key, "here", blind(reused), false, Dead},
			{"another boot, file on a local filesystem: ESRCH", s.otherBoot, "here", here(gone), true, Dead},
			{"another boot, file on a local filesystem: start differs", s.otherBoot, "there", here(reused), true, Dead},
			{"another boot, file on a local filesystem: a zombie", s.otherBoot, "there", here(zombie), true, Dead},
			{"another boot, file on a local filesystem: ESRCH where processes are hidden", s.otherBoot, "here", blind(gone), true, unlessBlind},
			{"another boot, file on a local filesystem: unreadable", s.otherBoot, "here", here(hidden), true, unlessBlind},
			{"another boot, file on a local filesystem: start equal", s.otherBoot, "here", here(runs), true, moved},
			{"another boot otherwise", s.otherBoot, "here", here(gone), false, Uncertain},
			{"another boot otherwise: start differs", s.otherBoot, "here", here(reused), false, Uncertain},
			{"another boot otherwise: the hostname differs too", s.otherBoot, "there", here(gone), false, OtherHost},
		} {
			t.Run(string(key.Scheme)+": "+c.row, func(t *testing.T) {
				v := decide(Identity{PID: 77, StartKey: c.key, Hostname: c.host}, ParseKey(c.key), c.facts, c.local)
				if v.Word != c.want {
					t.Errorf("%s, want %s: %s", v.Word, c.want, v.Reason)
				}
				aClause(t, v.Reason)
			})
		}
	}
}

// Where no keys are made, none proves anything.
func TestOnOtherSystemsNothingIsProven(t *testing.T) {
	for _, key := range []string{keyA, darwinKey, freebsdKey, "linux:500", "ps:x", ""} {
		for _, local := range []bool{false, true} {
			f := facts{Hostname: "here", Boot: weakBoot, Target: target{Absent: true}}
			v := decide(Identity{PID: 77, StartKey: key, Hostname: "here"}, ParseKey(key), f, local)
			if v.Word != Uncertain {
				t.Errorf("%s: %+v", key, v)
			}
		}
	}
}

func TestMoments(t *testing.T) {
	for _, c := range []struct {
		a, b moment
		want string
	}{
		{moment{1700000035, 500123}, moment{1700000000, 500000}, "35.000123"},
		{moment{10, 1}, moment{9, 999_999}, "0.000002"},
		{moment{10, 0}, moment{10, 0}, "0.000000"},
	} {
		if got := c.a.minus(c.b).String(); got != c.want || !isMoment(got) {
			t.Errorf("%v - %v is %s, want %s", c.a, c.b, got, c.want)
		}
	}
	for _, text := range []string{"", "1", "1.", "1.5", "01.000000", "1.0000000", "-1.000000", "1.00000x", ".000000", "1.000000.0"} {
		if isMoment(text) {
			t.Errorf("%q", text)
		}
	}
}

// kinfoProc is the beginning of struct kinfo_proc as FreeBSD's sys/user.h declares it, with the C types of a 64-bit kernel.
type kinfoProc struct {
	Structsize, Layout                           int32
	Args, Paddr, Addr, Tracep, Textvp, Fd, Space uint64
	Wchan                                        uint64
	Pid, Ppid, Pgid, Tpgid, Sid, Tsid            int32
	Jobc, Spare1                                 int16
	TdevFreebsd11                                uint32
	Siglist, Sigmask, Sigignore, Sigcatch        [16]byte
	UID, Ruid, Svuid, Rgid, Svgid                uint32
	Ngroups, Spare2                              int16
	Groups                                       [16]uint32
	Size                                         uint64
	Rssize, Swrss, Tsize, Dsize, Ssize           int64
	Xstat, Acflag                                uint16
	Pctcpu, Estcpu, Slptime, Swtime, Cow         uint32
	Runtime                                      uint64
	StartSec, StartUsec, ChildSec, ChildUsec     int64
	Flag, Kiflag                                 int64
	Traceflag                                    int32
	Stat, Nice                                   int8
	Rest                                         [698]byte
}

func TestParseKinfo(t *testing.T) {
	k := kinfoProc{Structsize: 1088, Pid: 4711, StartSec: 1700000000, StartUsec: 123, Stat: 2, Ppid: 1, ChildSec: 9, Flag: 5}
	bytesOf := func(k kinfoProc) []byte {
		var b bytes.Buffer
		check(t, binary.Write(&b, binary.LittleEndian, k))
		return b.Bytes()
	}
	if n := len(bytesOf(k)); n != 1088 || unsafe.Offsetof(k.Stat) != 388 {
		t.Fatalf("the declaration has %d bytes, ki_stat is at %d", n, unsafe.Offsetof(k.Stat))
	}
	want := process{pid: 4711, start: moment{1700000000, 123}}
	if p, err := parseKinfo(bytesOf(k)); err != nil || p != want {
		t.Errorf("%+v, %v", p, err)
	}
	k.Stat = 5
	want.zombie = true
	if p, err := parseKinfo(bytesOf(k)); err != nil || p != want {
		t.Errorf("a zombie: %+v, %v", p, err)
	}
	k.Structsize = 768
	for _, b := range [][]byte{nil, bytesOf(k), make([]byte, 1088), make([]byte, 768)} {
		if p, err := parseKinfo(b); err == nil {
			t.Errorf("%d bytes: %+v", len(b), p)
		}
	}
}

func TestBlindness(t *testing.T) {
	missing := errors.New("no such sysctl")
	plain := map[string]uint32{
		"security.jail.jailed": 0, "security.bsd.suser_enabled": 1,
		"security.bsd.see_other_uids": 1, "security.bsd.see_other_gids": 1, "security.bsd.see_jail_proc": 1,
	}
	for _, c := range []struct {
		what       string
		name       string
		value      uint32
		user, root bool // whether each is blind
	}{
		{"a plain system", "security.jail.jailed", 0, false, false},
		{"in a jail", "security.jail.jailed", 1, true, true},
		{"other users hidden", "security.bsd.see_other_uids", 0, true, false},
		{"other groups hidden", "security.bsd.see_other_gids", 0, true, false},
		{"jails hidden", "security.bsd.see_jail_proc", 0, true, false},
		{"a policy loaded", "security.mac.seeotheruids.enabled", 1, true, true},
		{"a policy loaded", "security.mac.partition.enabled", 1, true, true},
		{"a policy loaded, off", "security.mac.biba.enabled", 0, false, false},
	} {
		for _, root := range []bool{false, true} {
			read := func(name string) (uint32, error) {
				if name == c.name {
					return c.value, nil
				}
				if v, ok := plain[name]; ok {
					return v, nil
				}
				return 0, missing
			}
			want := c.user
			if root {
				want = c.root
			}
			if why := blindness(read, missing, root); (why != "") != want {
				t.Errorf("%s, root %v: %q", c.what, root, why)
			}
		}
	}
	powerless := func(name string) (uint32, error) {
		return map[string]uint32{"security.bsd.see_other_gids": 1, "security.bsd.see_jail_proc": 1}[name], nil
	}
	if blindness(powerless, missing, true) == "" {
		t.Error("a root without powers is taken to see everything")
	}
	jailUnknown := func(name string) (uint32, error) {
		if name == "security.jail.jailed" {
			return 0, errors.New("refused")
		}
		return plain[name], nil
	}
	if blindness(jailUnknown, missing, true) == "" {
		t.Error("a jail that cannot be asked about is taken to be none")
	}
	if blindness(func(string) (uint32, error) { return 0, errors.New("refused") }, missing, true) == "" {
		t.Error("what cannot be read is taken to hide nothing")
	}
}
