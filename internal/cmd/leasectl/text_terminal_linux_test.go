package leasectl_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"holdfast/internal/testkit"
	"holdfast/internal/testkit/pty"
)

// on runs leasectl on a terminal that is so wide.
func (s *scene) on(columns int, args ...string) *pty.Terminal {
	s.t.Helper()
	cmd := s.command("leasectl", args...)
	cmd.SysProcAttr = nil
	return pty.Start(s.t, cmd, 24, columns)
}

// shown is everything that a program showed on a terminal of that width, to its end.
func (s *scene) shown(columns int, args ...string) string {
	s.t.Helper()
	p := s.on(columns, args...)
	if status := p.Wait(); status != 0 {
		s.t.Errorf("status %d", status)
	}
	p.Drain()
	return p.All()
}

// withLabel is heldLease with another label.
func withLabel(label string) string { return strings.Replace(heldLease, "the planted one", label, 1) }

// clearing begins each picture of a line that is written over.
const clearing = "\r\x1b[2K"

// expectLive checks the pictures of a line that is written over: each of them fits into the width, and nothing moves to
// another line.
func expectLive(t *testing.T, shown string, columns int) {
	t.Helper()
	if !strings.HasPrefix(shown, clearing) || strings.Contains(shown, "\n") {
		t.Errorf("this is no line that is written over: %q", shown)
	}
	for _, picture := range strings.Split(shown, clearing) {
		if n := utf8.RuneCountInString(picture); n >= columns {
			t.Errorf("%d characters on %d columns: %q", n, columns, picture)
		}
		if strings.ContainsAny(picture, "\x1b\r") {
			t.Errorf("control characters in %q", picture)
		}
	}
}

// TestStatusOnATerminal: one line of text, no JSON.
func TestStatusOnATerminal(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	if got := s.shown(80, "status"); got != lockFile+": free\r\n" {
		t.Errorf("shown is %q", got)
	}
	s.write(lockFile, heldLease)
	want := regexp.MustCompile(`^state/orchestrator\.lock: held, \d+h\d+m\d+s left, fence 7, by aaaaaaaa-0000-4000-8000-000000000001 \(the planted one\) on planted \(renew by 2098-12-31T23:52:30\.000Z\)\r\n$`)
	if got := s.shown(80, "status"); !want.MatchString(got) {
		t.Errorf("shown is %q", got)
	}
	s.write(lockFile, withLabel(`\u001b[31mred\u001b]0;title\u0007`))
	if got := s.shown(80, "status"); strings.ContainsAny(got, "\x1b\x07") || !strings.Contains(got, `red`) {
		t.Errorf("the label acts on the terminal: %q", got)
	}
}

// TestWatchOnATerminal: a live line that follows the lease and the window; an interrupt is how it ends.
func TestWatchOnATerminal(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.write(lockFile, withLabel(`\u001b[31m`+strings.Repeat("long ", 30)))
	p := s.on(60, "watch")
	p.Expect(`held \d+h\d+m\d+s  [^ ]*long .*…  on planted  fence 7`)
	if err := os.Remove(s.path(lockFile)); err != nil {
		t.Fatal(err)
	}
	p.Expect(`\x1b\[2Kfree`)
	expectLive(t, p.All(), 60)
	p.Resize(24, 30)
	before := len(p.All())
	s.write("other", heldLease)
	if err := os.Rename(s.path("other"), s.path(lockFile)); err != nil {
		t.Fatal(err)
	}
	p.Expect(`held \d+h\d+m\d+s  `)
	time.Sleep(settle)
	shown := p.All()[before:]
	expectLive(t, shown[strings.Index(shown, clearing):], 30)
	p.Send(pty.CtrlC)
	if status := p.Wait(); status != 130 {
		t.Errorf("status %d", status)
	}
	p.Drain()
	if got := p.All(); !strings.HasSuffix(strings.Replace(got, "^C", "", 1), "\r\n") || strings.Count(got, "\n") != 1 {
		t.Errorf("the last picture does not stay on a line of its own: %q", got)
	}
}

// TestWaitOnATerminal: for whom it waits is shown on a line of its own, which is gone when there is a result.
func TestWaitOnATerminal(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.write(lockFile, withLabel(`\u001b[31mred `+strings.Repeat("wide ", 30)))
	p := s.on(70, "wait", "--for", "free", "--timeout", "1m")
	p.Expect(`waiting (<1|\d+)s for [^ ]*red wide .*… on planted, \d+h\d+m\d+s left`)
	time.Sleep(settle)
	expectLive(t, p.All(), 70)
	if err := os.Remove(s.path(lockFile)); err != nil {
		t.Fatal(err)
	}
	if status := p.Wait(); status != 0 {
		t.Errorf("status %d", status)
	}
	p.Drain()
	if got := p.All(); !strings.HasSuffix(got, clearing+lockFile+": free\r\n") {
		t.Errorf("shown is %q", got)
	}
}

// TestProgressIsForTheTerminalOnly: what is waited for goes to a terminal and nowhere else; standard output has the object alone.
func TestProgressIsForTheTerminalOnly(t *testing.T) {
	t.Parallel()
	s, sh := shellOn(t)
	s.write(lockFile, heldLease)
	sh.Type("leasectl acquire --wait 1m >object")
	sh.Expect("waiting (<1|\\d+)s for the planted one on planted, ")
	if err := os.Remove(s.path(lockFile)); err != nil {
		t.Fatal(err)
	}
	shown, status := sh.Shown()
	if status != 0 || !strings.HasSuffix(shown, clearing) {
		t.Errorf("status %d, shown is %q", status, shown)
	}
	if got := s.read("object"); strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, `{"tool":"leasectl","op":"acquire","ok":true,"code":"acquired",`) {
		t.Errorf("the object is %q", got)
	}
	s.write(lockFile, heldLease)
	if shown, status := sh.Run("leasectl run --wait 0.1s -- true 2>errors"); status != 125 || shown != "" || strings.Contains(s.read("errors"), "waiting") {
		t.Errorf("status %d, shown is %q, on standard error: %q", status, shown, s.read("errors"))
	}
}

// TestHistoryFitsTheWindow: one row for each tenure, as wide as the window and no wider; what is cut off is marked.
func TestHistoryFitsTheWindow(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	var journal strings.Builder
	at := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	for i, label := range []string{"short", strings.Repeat("a long label ", 15), "schichtführung ünïcode " + strings.Repeat("é", 100), `\u001b[31mred`} {
		holder := fmt.Sprintf("aaaaaaaa-0000-4000-8000-00000000000%d", i)
		for j, op := range []string{"acquired", "renewed", "released"} {
			fmt.Fprintf(&journal, `{"fence":%d,"op":%q,"holderId":%q,"token":"t","at":%q,"hostname":"planted","label":"%s"}`+"\n",
				i+1, op, holder, at.Add(time.Duration(j)*7*time.Minute).Format("2006-01-02T15:04:05.000Z"), label)
		}
		at = at.Add(time.Hour)
	}
	s.write(lockFile+".journal", journal.String())
	for columns, mustCut := range map[int]int{40: 4, 60: 4, 132: 2} {
		shown := s.shown(columns, "history")
		rows := strings.Split(strings.TrimSuffix(shown, "\r\n"), "\r\n")
		if len(rows) != 4 {
			t.Fatalf("on %d columns: %q", columns, shown)
		}
		for i, row := range rows {
			if n := utf8.RuneCountInString(row); n > columns {
				t.Errorf("%d characters on %d columns: %q", n, columns, row)
			}
			if !strings.HasPrefix(row, fmt.Sprintf("2026-01-02 0%d:00:00  ", 3+i)) || !strings.Contains(row, "█") {
				t.Errorf("on %d columns: %q", columns, row)
			}
		}
		if cut := strings.Count(shown, "…\r\n"); cut != mustCut {
			t.Errorf("on %d columns %d rows are cut: %q", columns, cut, rows)
		}
		if strings.Contains(shown, "\x1b") {
			t.Errorf("the label acts on the terminal: %q", shown)
		}
	}
	if testing.Verbose() {
		t.Log("\n" + s.shown(100, "history"))
	}
	testkit.Eventually(t, "every program has ended", func() bool { return len(s.mark.Processes()) == 0 })
}

// TestWatchOnEightyColumns: what people look for is there, in this order, and the id of the holder last.
func TestWatchOnEightyColumns(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.write(lockFile, withLabel("nightly build"))
	p := s.on(80, "watch")
	p.Expect(`held \d+h\d+m\d+s  nightly build  on planted  fence 7  aaaaaaaa…`)
	p.Send(pty.CtrlC)
	p.Wait()
	p = s.on(80, "wait", "--for", "free", "--timeout", "1m")
	p.Expect(`waiting (<1|\d+)s for nightly build on planted, \d+h\d+m\d+s left`)
	p.Send(pty.CtrlC)
	p.Wait()
}
