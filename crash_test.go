package holdfast_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"holdfast/internal/testkit/crash"
)

// The holders and the broken lease file that are planted.
const (
	crashOld     = "0d9e2f6a-1111-4a0c-9d8e-2f6b1f0f4a11"
	crashEarlier = "7c3b5e1f-2222-4a0c-9d8e-2f6b1f0f4a22"
	crashCorrupt = `{"holderId": "0d9e`
)

// raceDetector reports whether this binary has it.
var raceDetector bool

// killAll kills a verb at every call on the state, reads included. The race detector makes every start of a program slow,
// so under it the calls that only look are left out.
func killAll(t *testing.T, stage func(t testing.TB) crash.Scene) {
	if raceDetector {
		crash.AtEveryChange(t, stage)
		return
	}
	crash.AtEveryCall(t, stage)
}

// TestKilled kills every verb that changes something at every call it makes on the state, and shows that the lease file
// is the old or a complete new one, that the journal has lost nothing, and that the printed remedies lead to a new holder
// with a higher number.
func TestKilled(t *testing.T) {
	for name, stage := range map[string]func(t testing.TB) crashScene{
		"acquire-on-a-fresh-fleet":     crashAcquireFresh,
		"acquire-with-a-journal":       crashAcquireJournaled,
		"acquire-takes-over":           crashTakeOver,
		"acquire-compacts-the-journal": crashAcquireCompacting,
		"renew":                        crashRenew,
		"release":                      crashRelease,
		"set-aside":                    crashSetAside,
		"claim-clear-abandoned":        crashClearAbandoned,
		"claim-clear-forced":           crashClearEmpty,
	} {
		t.Run(name, func(t *testing.T) {
			killAll(t, func(t testing.TB) crash.Scene { return stage(t).scene(t) })
		})
	}
}

// TestKilledReader: verbs that only look leave nothing behind and change nothing.
func TestKilledReader(t *testing.T) {
	for _, args := range [][]string{
		{"status"}, {"verify", "--holder", crashOld}, {"list"}, {"history"}, {"claim", "inspect"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			killAll(t, func(t testing.TB) crash.Scene {
				s := crashRenew(t)
				s.plant(t, ".mutex", "a claim of another program\n")
				s.plant(t, ".stage", "{")
				before := s.files(t)
				return crash.Scene{Run: s.run(args...), Check: func(t testing.TB, _ crash.Call) {
					if now := s.files(t); !maps.Equal(now, before) {
						t.Errorf("before: %q\nnow: %q", before, now)
					}
				}}
			})
		})
	}
}

// crashPlantedLease is a lease that lives, or one that expired long ago.
func crashPlantedLease(fence uint64, live bool) crashLease {
	acquired := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	if live {
		acquired = time.Now().UTC().Add(-time.Minute).Truncate(time.Millisecond)
	}
	const layout = "2006-01-02T15:04:05.000Z"
	return crashLease{
		HolderID: crashOld, Hostname: "elsewhere", AcquiredAt: acquired.Format(layout),
		ExpiresAt: acquired.Add(time.Hour).Format(layout), DurationSeconds: 3600,
		Token: "5a1c0d3e-3333-4a0c-9d8e-2f6b1f0f4a33", Fence: fence, Label: "day shift", Note: "of another program",
	}
}

func crashPlantedEntry(fence uint64, op, holder string) crashEntry {
	return crashEntry{
		Fence: fence, Op: op, HolderID: holder, Token: "t", At: "2020-01-02T03:04:05.000Z", Hostname: "elsewhere",
	}
}

func crashPlantedJournal(entries ...crashEntry) string {
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(e.line())
	}
	return b.String()
}

// crashAcquire kills an acquire, which has to take the number.
func crashAcquire(f crashFleet, number uint64) crashScene {
	return crashScene{f, []string{"acquire", "--take-over", "--duration", "10m", "--label", "night shift"},
		func(a crashAftermath) error { return judgeCrashedAcquire(a, number) }}
}

// crashAcquireFresh: not even the state directory is there.
func crashAcquireFresh(t testing.TB) crashScene { return crashAcquire(newCrashFleet(t), 1) }

// crashAcquireJournaled: no lease, and a journal whose last number was skipped by a crash.
func crashAcquireJournaled(t testing.TB) crashScene {
	f := newCrashFleet(t)
	f.plant(t, ".journal", crashPlantedJournal(
		crashPlantedEntry(4, "acquired", crashEarlier), crashPlantedEntry(4, "released", crashEarlier),
		crashPlantedEntry(5, "acquired", crashEarlier)))
	s := crashAcquire(f, 6)
	s.args = []string{"acquire", "--duration", "10m", "--label", "night shift"}
	return s
}

// crashTakeOver: an expired lease, and a higher number in the journal that was skipped.
func crashTakeOver(t testing.TB) crashScene {
	f := newCrashFleet(t)
	f.plant(t, "", crashPlantedLease(7, false).encode())
	f.plant(t, ".journal", crashPlantedJournal(
		crashPlantedEntry(7, "acquired", crashOld), crashPlantedEntry(8, "taken-over", crashEarlier)))
	return crashAcquire(f, 9)
}

// crashAcquireCompacting: the journal is over its bound, and no line among those that are kept has the highest number.
func crashAcquireCompacting(t testing.TB) crashScene {
	f := newCrashFleet(t)
	e := crashPlantedEntry(0, "renewed", crashEarlier)
	e.Label = strings.Repeat("x", 100)
	f.plant(t, ".journal", crashPlantedEntry(41, "acquired", crashOld).line()+strings.Repeat(e.line(), (1<<20)/len(e.line())+1))
	return crashAcquire(f, 42)
}

func judgeCrashedAcquire(a crashAftermath, number uint64) error {
	op, l := "acquired", a.lease
	if a.before.has("") {
		op = "taken-over"
	}
	if a.line != nil && (a.line.Op != op || a.line.Fence != number) {
		return fmt.Errorf("the new line is %+v, not %s with %d", a.line, op, number)
	}
	switch {
	case l == nil && a.done:
		return errors.New("there is no new lease")
	case l == nil && !a.now.same(a.before, ""):
		return errors.New("the lease is gone")
	case l == nil:
		return nil
	case a.line == nil || l.Fence != number || l.Token != a.line.Token || l.HolderID != a.line.HolderID || l.HolderID == crashOld:
		return fmt.Errorf("the new lease %+v is not what the journal's new line %+v announced", l, a.line)
	case l.Label != "night shift" || l.expires().Sub(crashTime(l.AcquiredAt)) != 10*time.Minute:
		return fmt.Errorf("the new lease %+v is not what was asked for", l)
	}
	return nil
}

func crashRenew(t testing.TB) crashScene {
	f := newCrashFleet(t)
	f.plant(t, "", crashPlantedLease(7, true).encode())
	f.plant(t, ".journal", crashPlantedJournal(
		crashPlantedEntry(6, "acquired", crashEarlier), crashPlantedEntry(7, "acquired", crashOld)))
	return crashScene{f, []string{"renew", "--holder", crashOld}, judgeCrashedRenew}
}

func judgeCrashedRenew(a crashAftermath) error {
	old, err := parseCrashLease(a.before[""])
	if err != nil {
		return err
	}
	switch l := a.lease; {
	case l == nil && (a.done || a.line != nil):
		return errors.New("the lease was not renewed")
	case l == nil && !a.now.same(a.before, ""):
		return errors.New("the lease is gone")
	case l == nil:
		return nil
	case l.Token == old.Token || !l.expires().After(old.expires()):
		return fmt.Errorf("the lease %+v does not follow %+v", l, old)
	default:
		expected := old
		expected.Token, expected.ExpiresAt = l.Token, l.ExpiresAt
		if *l != expected {
			return fmt.Errorf("the renewal changed more than the expiry and the token: %+v", l)
		}
		if a.line != nil && (a.line.Op != "renewed" || a.line.Fence != old.Fence || a.line.Token != l.Token) {
			return fmt.Errorf("the new line is %+v", a.line)
		}
	}
	return nil
}

func crashRelease(t testing.TB) crashScene {
	s := crashRenew(t)
	s.args, s.judge = []string{"release", "--holder", crashOld}, judgeCrashedRelease
	return s
}

func judgeCrashedRelease(a crashAftermath) error {
	switch {
	case a.lease != nil:
		return fmt.Errorf("there is a new lease %+v", a.lease)
	case a.now.has("") && (a.done || a.line != nil):
		return errors.New("the lease was not released")
	case a.line != nil && (a.line.Op != "released" || a.line.Fence != 7 || a.line.HolderID != crashOld):
		return fmt.Errorf("the new line is %+v", a.line)
	}
	return nil
}

func crashSetAside(t testing.TB) crashScene {
	f := newCrashFleet(t)
	f.plant(t, "", crashCorrupt)
	f.plant(t, ".journal", crashPlantedJournal(crashPlantedEntry(7, "acquired", crashOld)))
	fingerprint := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(crashCorrupt)))
	return crashScene{f, []string{"set-aside", "--fingerprint", fingerprint}, judgeCrashedSetAside}
}

// judgeCrashedSetAside: the broken bytes are at one place or the other, whole.
func judgeCrashedSetAside(a crashAftermath) error {
	var at []string
	for suffix, content := range a.now {
		switch {
		case suffix != "" && !crashBrokenName.MatchString(suffix):
		case content != crashCorrupt:
			return fmt.Errorf("%s%s has the content %q", crashLock, suffix, content)
		default:
			at = append(at, suffix)
		}
	}
	if len(at) != 1 || a.lease != nil || a.line != nil || a.done && at[0] == "" {
		return fmt.Errorf("the broken file is at %q", at)
	}
	return nil
}

// crashClearAbandoned kills the clearer of a claim whose creator was killed just after its evidence was written.
func crashClearAbandoned(t testing.TB) crashScene {
	s := crashRenew(t)
	crash.Kill(t, s.run(s.args...), crashCallTo(t, crashRenew(t), "unlinkat", `.stage"`))
	var evidence struct{ Token string }
	if err := json.Unmarshal([]byte(s.files(t)[".mutex"]), &evidence); err != nil {
		t.Fatal(err)
	}
	s.args, s.judge = []string{"claim", "clear", "--token", evidence.Token}, judgeCrashedClear
	return s
}

// crashClearEmpty kills the clearer, by force, of a claim without evidence.
func crashClearEmpty(t testing.TB) crashScene {
	s := crashRenew(t)
	s.plant(t, ".mutex", "")
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(nil))
	s.args, s.judge = []string{"claim", "clear", "--force", "--digest", digest}, judgeCrashedClear
	return s
}

// judgeCrashedClear: the claim is as it was or gone, and nothing else was touched.
func judgeCrashedClear(a crashAftermath) error {
	expected := maps.Clone(a.before)
	if a.done || !a.now.has(".mutex") {
		delete(expected, ".mutex")
	}
	if !maps.Equal(a.now, expected) {
		return errors.New("clearing a claim changed something else")
	}
	return nil
}
