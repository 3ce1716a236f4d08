//go:build linux

package holdfast_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/internal/testkit/crash"
	"holdfast/pkg/fence"
)

// fenceScene is a session with a state, and the verb that is killed on it.
type fenceScene struct {
	*crashSession
	args   []string
	leaves string // the kinds of crashLeavings that a kill may add or change, beside claim, tx and temp
	judge  func(t testing.TB, a fenceAftermath)
	again  func(t testing.TB, a fenceAftermath) // the verb's own way on, when the locks are cleared
}

// fenceAftermath is what a killed verb left.
type fenceAftermath struct {
	before, now map[string]string
	done        bool         // the verb was not killed: it must have done everything
	old, claim  *fence.Claim // before and now; nil when there is none that can be read
}

// written reports whether there is a new claim.
func (a fenceAftermath) written() bool {
	return a.claim != nil && (a.old == nil || a.old.Generation != a.claim.Generation)
}

// crashLeavings are the kinds of files of a session.
var crashLeavings = map[string]*regexp.Regexp{
	"claim":    regexp.MustCompile(`^s/entwurf-owner\.json$`),
	"tx":       regexp.MustCompile(`^s/entwurf-owner\.tx$`),
	"temp":     regexp.MustCompile(`^s/entwurf-owner\.json\.tmp-\d+-[0-9a-f]{12}$`),
	"hold":     regexp.MustCompile(`^s/entwurf-owner\.hold$`),
	"breaks":   regexp.MustCompile(`^s/entwurf-owner\.breaks\.jsonl$`),
	"aside":    regexp.MustCompile(`^s/entwurf-owner\.json\.broken-[0-9a-f]{8}$`),
	"dir":      regexp.MustCompile(`^s$`),
	"lease":    regexp.MustCompile(`^[sl]\.lock$`),
	"ticket":   regexp.MustCompile(`^t/[^/]+\.ticket(\.tmp-\d+-[0-9a-f]{12})?$`),
	"arm":      regexp.MustCompile(`^meta/meta-record-arm-locks(/` + crashGarden + `\.lock)?$`),
	"record":   regexp.MustCompile(`^meta/meta-sessions(/` + crashGarden + `\.meta\.json(\.tmp-\d+-[0-9a-f]{12})?)?$`),
	"location": regexp.MustCompile(`^meta/meta-receivers(/` + crashGarden + `\.location\.json(\.tmp-\d+-[0-9a-f]{12})?)?$`),
}

func crashKind(name string) string {
	for kind, pattern := range crashLeavings {
		if pattern.MatchString(name) {
			return kind
		}
	}
	return "stray " + name
}

// killFence kills a verb at every call that changes something; under the race detector, which makes every start of a program
// slow, at those that change names.
func killFence(t *testing.T, stage func(t testing.TB) fenceScene) {
	t.Helper()
	kill := crash.AtEveryChange
	if raceDetector {
		kill = crash.AtEveryName
	}
	kill(t, func(t testing.TB) crash.Scene {
		s := stage(t)
		before := s.files(t)
		return crash.Scene{Run: s.run(s.args...), Check: func(t testing.TB, at crash.Call) { s.check(t, before, at) }}
	})
}

// check examines what the kill left, then goes the documented ways until somebody else is admitted.
func (s fenceScene) check(t testing.TB, before map[string]string, at crash.Call) {
	t.Helper()
	a := fenceAftermath{before: before, now: s.files(t), done: at.Name == crash.Exit, old: crashClaim(before)}
	a.claim = crashClaim(a.now)
	s.checkLeft(t, a)
	s.checkClaim(t, a)
	if s.judge != nil {
		s.judge(t, a)
	}
	s.checkShown(t, a)
	s.clearLocks(t, a)
	if s.again != nil {
		s.again(t, a)
	}
	s.endOwner()
	s.succeed(t)
	s.checkEnd(t, a)
}

// checkLeft: nothing was touched that the verb has no business with, and a verb that ended by itself left nothing half done.
func (s fenceScene) checkLeft(t testing.TB, a fenceAftermath) {
	t.Helper()
	kinds := append(strings.Fields(s.leaves), "claim", "tx", "temp")
	for _, name := range crashChanged(a.before, a.now) {
		kind := crashKind(name)
		if !slices.Contains(kinds, kind) {
			t.Fatalf("the verb left or changed %s (%s): %q", name, kind, a.now[name])
		}
		locked := kind == "tx" || strings.HasSuffix(name, ".lock") && kind == "arm"
		if there := a.now[name] != ""; a.done && there && (locked || strings.Contains(name, ".tmp-")) {
			t.Fatalf("a verb that ended by itself left %s: %q", name, a.now[name])
		}
	}
}

// crashChanged are the names whose content differs, or that only one has.
func crashChanged(before, now map[string]string) (names []string) {
	for name, content := range now {
		if was, there := before[name]; !there || was != content {
			names = append(names, name)
		}
	}
	for name := range before {
		if _, there := now[name]; !there {
			names = append(names, name)
		}
	}
	return names
}

// checkClaim: the old bytes, or a whole new claim, whose generation is that of the ticket, if there is one.
func (s fenceScene) checkClaim(t testing.TB, a fenceAftermath) {
	t.Helper()
	const name = "s/" + fence.ClaimName
	ticket := s.readTicket(t)
	if a.now[name] != a.before[name] && a.now[name] != "" {
		if a.claim == nil || !bytes.Equal(a.claim.Encode(), []byte(a.now[name])) {
			t.Fatalf("the claim is neither the old nor a whole new one: %q", a.now[name])
		}
		if ticket != nil && a.claim.Generation != ticket.Generation && a.claim.Generation != ticket.Pending {
			t.Fatalf("the claim is at %s, and the ticket is %+v", a.claim.Generation, ticket)
		}
	}
	if a.done && ticket != nil && (ticket.Pending != "" || ticket.Generation != a.claim.Generation) {
		t.Fatalf("the claim is at %s, and the ticket of a whole run is %+v", a.claim.Generation, ticket)
	}
}

// checkShown: show names the transaction file and the temps.
func (s fenceScene) checkShown(t testing.TB, a fenceAftermath) {
	t.Helper()
	if a.now["s"] == "" {
		return
	}
	var temps []string
	for name := range a.now {
		if crashKind(name) == "temp" {
			temps = append(temps, filepath.Base(name))
		}
	}
	slices.Sort(temps)
	st := s.fencectl(t, "show", "--dir", s.dir)
	slices.Sort(st.Temps)
	_, tx := a.now["s/"+fence.TxName]
	if !slices.Equal(st.Temps, temps) || tx != (st.Tx != nil) {
		t.Fatalf("there are the temps %q, and a transaction file: %v; shown is %s", temps, tx, st.output)
	}
}

// clearLocks follows what inspect prints about the transaction file and the record-arm lock.
func (s fenceScene) clearLocks(t testing.TB, a fenceAftermath) {
	t.Helper()
	if a.now["s"] != "" {
		s.clearLock(t, a.now, "s/"+fence.TxName, "--dir", s.dir)
	}
	if strings.Contains(s.leaves, "arm") {
		s.clearLock(t, a.now, "meta/meta-record-arm-locks/"+crashGarden+".lock", "--garden", crashGarden, "--meta-root", s.meta())
	}
}

func (s fenceScene) clearLock(t testing.TB, now map[string]string, name string, which ...string) {
	t.Helper()
	content, there := now[name]
	in := s.fencectl(t, append([]string{"tx", "inspect"}, which...)...)
	switch {
	case !there:
		in.is(0, "absent")
		return
	case content == "":
		in.is(0, "unproven")
	default:
		in.is(0, "abandoned")
		if !strings.Contains(in.Remedy, " --token ") || strings.Contains(in.Remedy, "--force") {
			t.Fatalf("want to be told the token: %s", in.output)
		}
	}
	s.paste(t, in.Remedy).is(0, "cleared")
}

// finish takes the owner to its end by the ticket that it has.
func (s *crashSession) finish(t testing.TB) {
	t.Helper()
	for range 5 {
		step := "closed"
		switch c := s.current(t); {
		case c.State == fence.Closed || c.State == fence.CloseFailed:
			return
		case c.State == fence.Leased && s.readTicket(t).StorageOpenAttempted:
			step = "storage-open"
		}
		s.fencectl(t, "mark", step, "--ticket", s.ticket).is(0, "marked")
	}
	t.Fatal("the owner does not come to an end")
}

// succeed admits this very process, by whatever remedies the refusals print.
func (s *crashSession) succeed(t testing.TB) {
	t.Helper()
	next := filepath.Join(filepath.Dir(s.ticket), "next.ticket")
	request := []string{"admit", "--dir", s.selected, "--owner-pid", strconv.Itoa(os.Getpid()), "--ticket", next, "--create"}
	deadline := time.Now().Add(20 * time.Second)
	for range 200 {
		a := s.fencectl(t, request...)
		switch {
		case a.status == 0:
			a.is(0, "admitted")
			return
		case a.Code == "owner-uncertain" && a.Hold != nil && a.Hold.State == "held" && time.Now().Before(deadline):
			time.Sleep(20 * time.Millisecond) // what the killed wrapper started is on its way out
		case a.Code == "legacy-lease-present" || a.Code == "lease-unattributed":
			if s.paste(t, a.Remedy).Code == "lease-too-young" {
				crashAge(t, a.NativeLeases[0].Path)
			}
		default:
			s.pasted(t, a)
		}
	}
	t.Fatal("nobody is admitted")
}

// pasted follows a remedy that has to help.
func (s *crashSession) pasted(t testing.TB, a fenceAnswer) {
	t.Helper()
	if cured := s.paste(t, a.Remedy); a.Remedy == "" || cured.status != 0 {
		t.Fatalf("the remedy of\n%s\ndoes not help:\n%s", a.output, cured.output)
	}
}

// checkEnd: no lock is left, and nothing that was neither there before nor left by the kill, but what an owner makes.
func (s fenceScene) checkEnd(t testing.TB, a fenceAftermath) {
	t.Helper()
	for name := range s.files(t) {
		_, before := a.before[name]
		_, left := a.now[name]
		kind := crashKind(name)
		switch {
		case kind == "tx" || kind == "arm" && strings.HasSuffix(name, ".lock"):
			t.Errorf("%s is still there", name)
		case before, left, name == "t/next.ticket", name == "t/one.ticket", kind == "claim", kind == "dir", kind == "breaks", kind == "aside",
			(kind == "record" || kind == "location" || kind == "arm") && !strings.Contains(name, ".tmp-"):
		default:
			t.Errorf("%s lies around in the end", name)
		}
	}
}
