package procid

import (
	"strings"
	"testing"
)

const (
	bootA = "01234567-89ab-cdef-0123-456789abcdef"
	bootB = "fedcba98-7654-3210-fedc-ba9876543210"
	keyA  = "linux:500@" + bootA + "/4026531836"
)

// Each row of the design's verdict table stands under its own words; several cases may belong to one row.
func TestVerdicts(t *testing.T) {
	const ours, other = 4026531836, 4026532999
	here := func(target target) facts {
		return facts{System: SchemeLinux, Hostname: "here", Boot: bootA, NS: ours, Target: target}
	}
	inside := func(s scan) facts {
		return facts{System: SchemeLinux, Hostname: "here", Boot: bootA, NS: other, Namespaces: s}
	}
	with := func(f facts, change func(*facts)) facts { change(&f); return f }
	weakNow := func(target target) facts {
		return facts{System: SchemeLinux, Hostname: "here", Boot: "?", NS: ours, Target: target}
	}
	runs := target{Known: true, Ticks: 500}
	zombie := target{Known: true, Ticks: 500, Zombie: true}
	reused := target{Known: true, Ticks: 501}
	gone := target{Absent: true}
	hidden := target{}

	for _, c := range []struct {
		row   string
		key   string
		host  string
		facts facts
		local bool
		want  Word
	}{
		{"not recognised", "", "here", here(gone), true, Uncertain},
		{"not recognised", "linux:", "here", here(gone), true, Uncertain},
		{"not recognised", "linux:500@" + bootA, "here", here(gone), true, Uncertain},
		{"not recognised", "plan9:500", "here", here(gone), true, Uncertain},
		{"not recognised, on another host", "plan9:500", "there", here(gone), true, Uncertain},
		{"schemes differ", "darwin:1700000000.123456@uuid", "here", here(gone), true, Uncertain},
		{"schemes differ", "freebsd:1700000000.123456@1690000000", "here", here(gone), true, Uncertain},
		{"unreadable now and pid not proven absent", keyA, "here", here(hidden), true, Uncertain},
		{"unreadable now and pid not proven absent", "linux:500", "here", here(hidden), true, Uncertain},
		{"no key can be compared", keyA, "here", with(here(gone), func(f *facts) { f.Unusable = "why" }), true, Uncertain},
		{"no key can be compared", "linux:500", "here", with(here(gone), func(f *facts) { f.Unusable = "why" }), true, Uncertain},
		{"no key can be compared", "linux:500@?/4026531836", "here", with(here(runs), func(f *facts) { f.Unusable = "why" }), true, Uncertain},

		{"same boot, same pid namespace: key equal", keyA, "here", here(runs), false, Live},
		{"same boot, same pid namespace: key equal; the hostname has changed", keyA, "there", here(runs), false, Live},
		{"same boot, same pid namespace: a zombie", keyA, "here", here(zombie), false, Dead},
		{"same boot, same pid namespace: ESRCH", keyA, "here", here(gone), false, Dead},
		{"same boot, same pid namespace: ESRCH; the hostname has changed", keyA, "there", here(gone), false, Dead},
		{"same boot, same pid namespace: ticks differ", keyA, "here", here(reused), false, Dead},

		{"another pid namespace, seen from the initial one: found", keyA, "here", inside(scan{Done: true, Found: true}), false, Live},
		{"another pid namespace, seen from the initial one: found as a zombie", keyA, "here", inside(scan{Done: true, Found: true, Zombie: true}), false, Dead},
		{"another pid namespace, seen from the initial one: not found", keyA, "here", inside(scan{Done: true}), false, Dead},
		{"another pid namespace otherwise", keyA, "here", inside(scan{}), true, Uncertain},
		{"another pid namespace otherwise: the pid here means nothing", keyA, "here", with(inside(scan{}), func(f *facts) { f.Target = gone }), true, Uncertain},

		{"another boot, file on a local filesystem", strings.Replace(keyA, bootA, bootB, 1), "here", here(runs), true, Dead},
		{"another boot, file on a local filesystem; another hostname", strings.Replace(keyA, bootA, bootB, 1), "there", here(runs), true, Dead},
		{"another boot, file on a local filesystem; another namespace", "linux:500@" + bootB + "/4026532999", "here", here(hidden), true, Dead},
		{"another boot otherwise", strings.Replace(keyA, bootA, bootB, 1), "here", here(gone), false, Uncertain},
		{"another boot otherwise: the hostname differs too", strings.Replace(keyA, bootA, bootB, 1), "there", here(gone), false, OtherHost},

		{"weak key: same pid namespace and key equal", "linux:500@?/4026531836", "here", weakNow(runs), true, Live},
		{"weak key otherwise: ESRCH", "linux:500@?/4026531836", "here", weakNow(gone), true, Uncertain},
		{"weak key otherwise: ticks differ", "linux:500@?/4026531836", "here", weakNow(reused), true, Uncertain},
		{"weak key otherwise: a zombie", "linux:500@?/4026531836", "here", weakNow(zombie), true, Uncertain},
		{"weak key otherwise: unreadable", "linux:500@?/4026531836", "here", weakNow(hidden), true, Uncertain},
		{"weak key otherwise: another pid namespace", "linux:500@?/4026532999", "here", weakNow(runs), true, Uncertain},
		{"weak key otherwise: another hostname, gone", "linux:500@?/4026531836", "there", weakNow(gone), true, Uncertain},
		{"weak key otherwise: our boot is known, gone", "linux:500@?/4026531836", "here", here(gone), true, Uncertain},
		{"weak key otherwise: only ours is weak", keyA, "here", weakNow(gone), true, Uncertain},

		{"legacy, other hostname", "linux:500", "there", here(gone), true, OtherHost},
		{"legacy, other hostname", "linux:500", "there", here(runs), false, OtherHost},
		{"legacy, same hostname: ESRCH", "linux:500", "here", here(gone), false, Dead},
		{"legacy, same hostname: ticks differ", "linux:500", "here", here(reused), false, Dead},
		{"legacy, same hostname: equal", "linux:500", "here", here(runs), false, Live},
		{"legacy, same hostname: equal, a zombie", "linux:500", "here", here(zombie), false, Dead},
		{"legacy ps: texts", "ps:Mon Jan  1 00:00:00 2024", "here", here(gone), true, Uncertain},
		{"legacy ps: texts", "ps:Mon Jan  1 00:00:00 2024", "there", here(gone), true, Uncertain},
	} {
		t.Run(c.row, func(t *testing.T) {
			rec := Identity{PID: 77, StartKey: c.key, Hostname: c.host}
			v := decide(rec, ParseKey(c.key), c.facts, c.local)
			if v.Word != c.want {
				t.Errorf("%s, want %s: %s", v.Word, c.want, v.Reason)
			}
			aClause(t, v.Reason)
			if strings.HasPrefix(c.row, "legacy, same hostname") && !strings.Contains(v.Reason, "names no pid namespace") {
				t.Errorf("the reason does not say what the key lacks: %s", v.Reason)
			}
			if strings.HasPrefix(c.row, "no key can be compared") && v.Reason != "why" {
				t.Errorf("the reason does not say why: %s", v.Reason)
			}
		})
	}
}

// Whatever is observed, a death is said only when something proves it: nothing that is merely unknown does.
func TestNothingUnknownIsDeath(t *testing.T) {
	proofs := func(f facts, key Key, local bool) bool {
		t := f.Target
		notHere := t.Absent || t.Known && (t.Ticks != key.Ticks || t.Zombie)
		otherBoot := !key.Weak() && f.Boot != "?" && key.Boot != f.Boot
		switch {
		case f.Unusable != "":
			return false
		case key.Scheme == SchemeLegacyTicks:
			return notHere
		case key.Scheme != SchemeLinux, key.Weak(), f.Boot == "?":
			return false
		case otherBoot:
			return local
		case key.NS == f.NS:
			return notHere
		}
		return f.Namespaces.Done && (!f.Namespaces.Found || f.Namespaces.Zombie)
	}
	booleans := []bool{false, true}
	cases := 0
	for _, text := range []string{keyA, "linux:500@" + bootB + "/4026531836", "linux:500@?/4026531836", "linux:500@" + bootA + "/1", "linux:500", "ps:x", "darwin:1.2@x", ""} {
		key := ParseKey(text)
		for _, f := range everything() {
			for _, local := range booleans {
				for _, host := range []string{"here", "there"} {
					cases++
					v := decide(Identity{PID: 7, StartKey: text, Hostname: host}, key, f, local)
					proven := proofs(f, key, local) && (key.Scheme != SchemeLegacyTicks || host == "here")
					if (v.Word == Dead) != proven {
						t.Errorf("%s %s local %v: %+v: %+v, proven %v", text, host, local, f, v, proven)
					}
				}
			}
		}
	}
	if cases < 2000 {
		t.Errorf("only %d cases", cases)
	}
}

// everything is all combinations of facts.
func everything() (all []facts) {
	for _, boot := range []string{bootA, "?"} {
		for _, ns := range []uint64{4026531836, 2} {
			for _, unusable := range []string{"", "why"} {
				for _, t := range []target{{}, {Absent: true}, {Known: true, Ticks: 500}, {Known: true, Ticks: 500, Zombie: true}, {Known: true, Ticks: 1}, {Known: true, Ticks: 1, Zombie: true}} {
					for _, s := range []scan{{}, {Done: true}, {Done: true, Found: true}, {Done: true, Found: true, Zombie: true}} {
						all = append(all, facts{System: SchemeLinux, Hostname: "here", Boot: boot, NS: ns, Unusable: unusable, Target: t, Namespaces: s})
					}
				}
			}
		}
	}
	return all
}

func aClause(t *testing.T, reason string) {
	t.Helper()
	if reason == "" || strings.HasSuffix(reason, ".") || strings.Contains(reason, "\n") {
		t.Errorf("the reason is no clause: %q", reason)
	}
}
