//go:build linux

package holdfast_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/pkg/fence"
)

// gardenVerb is a verb that works on a garden, on a session that it succeeds on.
type gardenVerb struct {
	name string
	args func(t testing.TB, s *crashSession) []string // plants the session
	done string
}

// gardenVerbs are an enrolment over an earlier one, a reservation and an adoption.
var gardenVerbs = []gardenVerb{
	{"enroll", func(t testing.TB, s *crashSession) []string {
		s.own(t, fence.StorageOpen, true)
		return s.garden("enroll", "--cwd", crashCWD, "--ticket", s.ticket)
	}, "enrolled"},
	{"reserve", func(t testing.TB, s *crashSession) []string {
		s.plantClaim(t, s.claim(fence.Closed, s.dead()))
		return s.garden("reserve", "--owner-pid", s.pid())
	}, "reserved"},
	{"adopt", func(t testing.TB, s *crashSession) []string {
		s.plantClaim(t, s.reserved(s.self, s.claim(fence.Closed, s.dead()), "absent"))
		return s.adopting(crashGeneration)
	}, "adopted"},
}

// gardenPlaces are the files of a garden.
var gardenPlaces = map[string]string{
	"record": crashRecord, "location": crashLocation, "arm lock": "meta/meta-record-arm-locks/" + crashGarden + ".lock",
}

// gardenFault is something wrong with a file, and what the verbs answer to it at a record or a location; an empty answer is none.
type gardenFault struct {
	name    string
	plant   func(t *testing.T, path string) (undisturbed func(*testing.T))
	enroll  string // at the record
	enrollL string // at the location, which an enrolment replaces
	read    string // reserve and adopt
	arm     string
}

func gardenFaults() []gardenFault {
	var faults []gardenFault
	for _, k := range kinds {
		faults = append(faults, gardenFault{k.name, func(t *testing.T, path string) func(*testing.T) {
			must(t, os.RemoveAll(path))
			return k.plant(t, path)
		}, "not-regular", "not-regular", "profile-record-unbound", "not-regular"})
	}
	rewritten := func(change func(content string) string) func(*testing.T, string) func(*testing.T) {
		return func(t *testing.T, path string) func(*testing.T) {
			content, _ := os.ReadFile(path)
			must(t, os.WriteFile(path, []byte(change(string(content))), 0o600))
			return nil
		}
	}
	replacing := func(old, with string) func(string) string {
		return func(content string) string { return strings.ReplaceAll(content, old, with) }
	}
	return append(faults,
		gardenFault{"missing", func(t *testing.T, path string) func(*testing.T) { must(t, os.RemoveAll(path)); return nil },
			"", "", "profile-record-unbound", ""},
		gardenFault{"empty", rewritten(func(string) string { return "" }), "profile-record-unbound", "", "profile-record-unbound", "record-arm-busy"},
		gardenFault{"truncated", rewritten(func(content string) string { return "{" + strings.TrimPrefix(content, "{")[:len(content)/2] }),
			"profile-record-unbound", "", "profile-record-unbound", "record-arm-busy"},
		gardenFault{"NUL bytes", rewritten(func(content string) string { return strings.Repeat("\x00", 100) }),
			"profile-record-unbound", "", "profile-record-unbound", "record-arm-busy"},
		gardenFault{"too large", rewritten(func(content string) string { return content + strings.Repeat(" ", 2<<20) }),
			"too-large", "", "profile-record-unbound", "record-arm-busy"},
		gardenFault{"another garden's", rewritten(replacing(crashGarden, "20260101T000000-000000")),
			"profile-record-unbound", "", "profile-record-unbound", "record-arm-busy"},
		gardenFault{"another incarnation", rewritten(replacing(crashIncarnation, "i2")), "", "", "binding-mismatch", "record-arm-busy"},
	)
}

// answer is what the verb has to say; empty when it succeeds.
func (f gardenFault) answer(place string, v gardenVerb) string {
	switch {
	case place == "arm lock":
		return f.arm
	case v.name != "enroll":
		return f.read
	case place == "location":
		return f.enrollL
	}
	return f.enroll
}

// gardenStatus are the exit statuses of the refusals here.
var gardenStatus = map[string]int{
	"not-regular": 65, "too-large": 65, "profile-record-unbound": 1, "binding-mismatch": 1, "record-arm-busy": 75,
}

// TestEveryFaultOfAGarden plants each at the record, the location and the record-arm lock: the verbs name it at once, open
// nothing that is no file, and change nothing.
func TestEveryFaultOfAGarden(t *testing.T) {
	for _, f := range gardenFaults() {
		for place, name := range gardenPlaces {
			for _, v := range gardenVerbs {
				t.Run(f.name+" at the "+place+"/"+v.name, func(t *testing.T) {
					t.Parallel()
					s := newCrashSession(t)
					args := v.args(t, s)
					s.plantGarden(t, s.dead())
					if place == "arm lock" && f.name != "missing" {
						s.abandoned(t, name)
					}
					undisturbed := f.plant(t, filepath.Join(s.root, name))
					check := untouched(t, s.root)

					a := ask(t, s.root, append([]string{"fencectl"}, args...)...)

					if code := f.answer(place, v); code == "" {
						a.is(0, v.done)
					} else {
						a.is(gardenStatus[code], code)
						s.removeEmptyArmLocks(t, place)
						check(v.name)
					}
					if undisturbed != nil {
						undisturbed(t)
					}
				})
			}
		}
	}
}

// removeEmptyArmLocks removes the directory of the record-arm locks, which a verb makes, unless it was planted.
func (s *crashSession) removeEmptyArmLocks(t *testing.T, place string) {
	t.Helper()
	if place != "arm lock" {
		must(t, os.Remove(filepath.Join(s.meta(), "meta-record-arm-locks")))
	}
}
