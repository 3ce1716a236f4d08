package fence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/internal/testkit"
	"holdfast/pkg/procid"
)

// ownWrites are the claims that every decision of this package writes, by what wrote them.
func ownWrites(t *testing.T, each func(what string, c *Claim)) {
	decided := func(what string, c *Claim, refusal *Refusal) {
		if refusal == nil {
			each(what, c)
		}
	}
	for row, cells := range admissionCells(t) {
		for _, cell := range cells {
			c, refusal := admit(cell.req, cell.s, specWrite)
			decided(row+": "+cell.name, c, refusal)
		}
	}
	for _, v := range validClaims() {
		if v.row.schema == 1 {
			continue
		}
		c := v.doc.read(t)
		for _, to := range specStates {
			for _, step := range stepsFrom(v.row, to) {
				m := step.mark()
				m.Cause, m.EnvCleanup = strings.Repeat("\U0001f600", 257), step.storage != "never-opened"
				next, refusal := transit(m, standingAt(c, step.attempted), specWrite)
				decided(v.name+": "+step.String(), next, refusal)
			}
		}
		next, refusal := breakDecision(Break{Generation: c.Generation, OwnerIsGone: true}, met(c, procid.Uncertain), specOwner(31337), specWrite)
		decided(v.name+" broken", next, refusal)
		each(v.name+" put back", restored(&Admission{Claim: c, Replaced: c}, specWrite))
		if c.Reservation != nil {
			each(v.name+" withdrawn", withdrawn(c, specWrite))
		}
	}
}

func TestTheOtherImplementationReadsWhatWeWriteAndRefusesSchema3(t *testing.T) {
	written := map[int]map[State]int{2: {}, 3: {}}
	ownWrites(t, func(what string, c *Claim) {
		if written[c.SchemaVersion] == nil {
			t.Fatalf("%s: writes schema %d", what, c.SchemaVersion)
		}
		written[c.SchemaVersion][c.State]++
		_, err := tsRead(c.Encode())
		if c.SchemaVersion == 2 && err != nil {
			t.Errorf("%s: %v: %s", what, err, c.Encode())
		}
		if c.SchemaVersion == 3 && err == nil {
			t.Errorf("%s: schema 3 is read", what)
		}
	})
	for schema, states := range written {
		if len(states) != len(specStates) {
			t.Errorf("schema %d: %v", schema, states)
		}
	}
	t.Logf("%v", written)
}

func TestTheOtherReaderOfTheseTestsKnowsItsOwnClaims(t *testing.T) {
	for _, v := range validClaims() {
		if _, err := tsRead([]byte(v.doc.stringify())); (err == nil) != (v.row.schema < 3) {
			t.Errorf("%s: %v", v.name, err)
		}
	}
	for _, r := range everyRow() {
		if _, err := tsRead([]byte(r.claim().stringify())); (err == nil) != (r.possible() && r.schema < 3) {
			t.Errorf("%s: %v", r, err)
		}
	}
}

// The start keys that this package writes are of no kind that the other implementation compares.
func TestTheOtherImplementationNeverJudgesAnOwnerOfOursDead(t *testing.T) {
	self, err := procid.Self()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	started, err := procid.Of(child.Process.Pid)
	child.Process.Kill()
	child.Wait()
	if err != nil {
		t.Fatal(err)
	}
	for name, owner := range map[string]procid.Identity{"alive": self, "gone": started} {
		o := map[string]any{"pid": float64(owner.PID), "startKey": owner.StartKey, "hostname": owner.Hostname}
		for hostname, want := range map[string]string{owner.Hostname: "uncertain", owner.Hostname + "2": "other-host"} {
			if got := tsJudge(o, hostname, func(int) string { return "linux:1" }); got != want {
				t.Errorf("an owner that is %s is %s there, want %s", name, got, want)
			}
		}
	}
}

// foreignOwner is an owner as the other implementation records it.
func foreignOwner(pid int, key, hostname string) jsObject {
	return js("pid", pid, "startKey", key, "hostname", hostname)
}

// ended is the pid of a process that is gone.
func ended(t *testing.T) int {
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

// durableSession is a session directory in the layout of schema 2, with a claim of the other implementation in it.
type durableSession struct{ profile, dir, ticket string }

func newDurableSession(t *testing.T) durableSession {
	base, err := filepath.EvalSymlinks(testkit.MemDir(t))
	if err != nil {
		t.Fatal(err)
	}
	s := durableSession{profile: filepath.Join(base, "profile"), ticket: filepath.Join(base, "ticket")}
	s.dir = filepath.Join(s.profile, "experimental", "durable-sessions", "0123456789abcdef01234567", "s1")
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s durableSession) plant(t *testing.T, r specRow, owner jsObject) []byte {
	selected := js("n", "s1", "directory", s.dir)
	if r.schema == 2 {
		selected = append(selected, jsMember{"profile", s.profile})
	}
	text := []byte(r.claim().with("resource", s.dir).with("selected", selected).with("owner", owner).stringify())
	if _, err := tsRead(text); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, ClaimName), text, 0o600); err != nil {
		t.Fatal(err)
	}
	return text
}

func (s durableSession) admit(t *testing.T, profile string) (*Admission, error) {
	f, err := Open(s.dir, false, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	self, err := procid.Self()
	if err != nil {
		t.Fatal(err)
	}
	return f.Admit(context.Background(), Request{Profile: profile, Owner: self, Ticket: s.ticket})
}

func TestAClaimOfTheOtherImplementationIsJudgedByTheRowsAndTakenOver(t *testing.T) {
	self, err := procid.Self()
	if err != nil {
		t.Fatal(err)
	}
	ticks := fmt.Sprintf("linux:%d", procid.ParseKey(self.StartKey).Ticks)
	gone := foreignOwner(ended(t), "linux:1", self.Hostname)
	alive := foreignOwner(os.Getpid(), ticks, self.Hostname)
	for _, c := range []struct {
		name  string
		row   specRow
		owner jsObject
		lease bool
		code  string // empty: taken over
	}{
		{"a dead owner that held the lease", specRow{0, "storage-open", "held", "none"}, gone, true, ""},
		{"a dead owner without one", specRow{0, "fenced", "never-held", "none"}, gone, false, ""},
		{"a failed end", specRow{0, "close-failed", "unknown", "failed"}, gone, true, ""},
		{"a clean end", specRow{0, "closed", "released", "closed"}, alive, false, ""},
		{"a clean end and a lease", specRow{0, "closed", "released", "closed"}, gone, true, "legacy-lease-present"},
		{"another's lease", specRow{0, "fenced", "never-held", "none"}, gone, true, "lease-unattributed"},
		{"a live owner", specRow{0, "leased", "held", "none"}, alive, true, "owner-live"},
		{"an owner known by the text of ps", specRow{0, "leased", "held", "none"}, foreignOwner(os.Getpid(), "ps:Mon Nov 30 05:03:22 2026", self.Hostname), false, "owner-uncertain"},
		{"an owner elsewhere", specRow{0, "leased", "held", "none"}, foreignOwner(4001, "linux:1", self.Hostname+"2"), false, "owner-other-host"},
	} {
		for schema := 1; schema <= 2; schema++ {
			t.Run(fmt.Sprintf("%s, schema %d", c.name, schema), func(t *testing.T) {
				s := newDurableSession(t)
				c.row.schema = schema
				text := s.plant(t, c.row, c.owner)
				if c.lease {
					if err := os.Mkdir(s.dir+".lock", 0o700); err != nil {
						t.Fatal(err)
					}
				}
				if c.code == "" {
					s.refuses(t, "", "profile-required", text)
					s.takesOver(t, c.row)
				} else {
					s.refuses(t, s.profile, c.code, text)
				}
			})
		}
	}
}

// refuses checks that an admission is refused and that nothing changed.
func (s durableSession) refuses(t *testing.T, profile, code string, text []byte) {
	t.Helper()
	a, err := s.admit(t, profile)
	var refusal *Refusal
	if !errors.As(err, &refusal) || refusal.Code != code {
		t.Fatalf("%+v, %v; want %s", a, err, code)
	}
	if now, err := os.ReadFile(filepath.Join(s.dir, ClaimName)); err != nil || !bytes.Equal(now, text) {
		t.Errorf("the claim is changed: %v: %s", err, now)
	}
	if _, err := os.Lstat(s.ticket); !os.IsNotExist(err) {
		t.Errorf("a ticket is left: %v", err)
	}
}

// takesOver checks that an admission takes the claim over, and that the other implementation reads each claim of the life
// that follows.
func (s durableSession) takesOver(t *testing.T, row specRow) {
	t.Helper()
	a, err := s.admit(t, s.profile)
	if err != nil {
		t.Fatal(err)
	}
	from := a.Claim.ReclaimedFrom
	if row.state == "closed" {
		if from != nil {
			t.Errorf("reclaimed from a clean end: %+v", from)
		}
	} else if from == nil || string(from.State) != row.state || string(from.LeaseOutcome) != row.lease || from.Generation != jsGeneration("a") {
		t.Errorf("reclaimedFrom %+v", from)
	}
	if a.Claim.SchemaVersion != 2 || a.Claim.FirstParticipation.Generation != jsGeneration("b") {
		t.Errorf("%s", a.Claim.Encode())
	}
	for _, m := range []Mark{{}, {To: Leased}, {To: StorageOpen, Attempt: true}, {To: Closed}} {
		if m.To != "" {
			if _, err := MarkTicket(context.Background(), s.ticket, m, Options{}); err != nil {
				t.Fatal(err)
			}
		}
		text, err := os.ReadFile(filepath.Join(s.dir, ClaimName))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tsRead(text); err != nil {
			t.Errorf("%v: %s", err, text)
		}
	}
}

// nodeStringify has Node write again what it reads.
const nodeStringify = `
const fs = require("fs");
const claims = fs.readFileSync(0, "utf8").split("\0");
process.stdout.write(claims.map(c => JSON.stringify(JSON.parse(c), null, "\t") + "\n").join("\0"));
`

func TestAClaimIsTheBytesThatNodeWouldWrite(t *testing.T) {
	testkit.NeedTool(t, "node")
	ended := specRow{2, "close-failed", "unknown", "failed"}.claim()
	texts := []string{}
	for _, cause := range []string{
		`<a href=\"x\"> & ' / \\ \u007f`, "\u2028\u2029\ufeff\ufffd\U0001f600é", `\b\f\n\r\t\u0000\u0001\u001f`, `\ud83d`, `x\udc00y\ud800\ud83d\ude00`, ``,
	} {
		texts = append(texts, string(ended.with("end.cause", jsRaw(`"`+cause+`"`)).read(t).Encode()))
	}
	for _, v := range validClaims() {
		texts = append(texts, string(v.doc.read(t).Encode()))
	}
	cmd := exec.Command("node", "-e", nodeStringify)
	cmd.Stdin = strings.NewReader(strings.Join(texts, "\x00"))
	out := strings.Split(testkit.Play(t, cmd), "\x00")
	if len(out) != len(texts) {
		t.Fatalf("%d claims of %d", len(out), len(texts))
	}
	for i := range texts {
		if out[i] != texts[i] {
			t.Errorf("%q is by Node\n%q", texts[i], out[i])
		}
	}
}
