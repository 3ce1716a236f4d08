package leasectl_test

import (
	"os"
	"strings"
	"testing"
)

const (
	claimFile    = lockFile + ".mutex"
	foreignClaim = "another-programs-token"
	ourClaim     = `{"token":"aaaaaaaa-0000-4000-8000-0000000000cc","tool":"leasectl","op":"renew","pid":1,"startKey":"linux:1",` +
		`"hostname":"planted","enteredAt":"2020-01-01T00:00:00.000Z","dev":1,"kernelLock":true}` + "\n"
)

// TestClaimWaitOnATerminal: every verb that changes something shows whose claim it waits for, on a line that is gone when there
// is a result.
func TestClaimWaitOnATerminal(t *testing.T) {
	const holder = "aaaaaaaa-0000-4000-8000-000000000001"
	for name, c := range map[string]struct {
		lease, claim string
		args         []string
		shows        string
		result       string // the beginning of what stays
	}{
		"acquire":   {"", foreignClaim, []string{"acquire"}, `waiting for the claim, \ds: another program has it, ` + claimFile, lockFile + ": acquired"},
		"renew":     {heldLease, ourClaim, []string{"renew", "--holder", holder}, `waiting for the claim, \ds: leasectl renew has it, pid 1 on planted`, lockFile + ": renewed"},
		"release":   {heldLease, ourClaim, []string{"release", "--holder", holder}, "waiting for the claim", lockFile + ": released"},
		"set-aside": {"{", foreignClaim, []string{"set-aside", "--fingerprint", "sha256:021fb596db81e6d02bf3d2586ee3981fe519f275c0ac9ca76bbcf2ebb4097d96"}, "waiting for the claim", "moved "},
		"run":       {"", foreignClaim, []string{"run", "--", "echo", "the command's"}, "waiting for the claim", "the command's"},
		"a run's end": {"", "", []string{"run", "--", "sh", "-c", "echo token >" + claimFile + "; printf \"the command's\""},
			"waiting for the claim", ""},
		"a refusal": {heldLease, ourClaim, []string{"release", "--holder", holder}, "waiting for the claim", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			for file, content := range map[string]string{lockFile: c.lease, claimFile: c.claim} {
				if content != "" {
					s.write(file, content)
				}
			}
			p := s.on(200, c.args...)
			p.Expect(c.shows)
			if name == "a refusal" {
				s.write(lockFile, strings.Replace(heldLease, holder, "bbbbbbbb-0000-4000-8000-000000000001", 1))
			}
			if err := os.Remove(s.path(claimFile)); err != nil {
				t.Fatal(err)
			}
			if status := p.Wait(); (status != 0) != (name == "a refusal") {
				t.Errorf("status %d", status)
			}
			p.Drain()
			shown := p.All()
			if last := shown[strings.LastIndex(shown, clearing)+len(clearing):]; !strings.HasPrefix(last, c.result) || strings.Contains(last, "waiting") {
				t.Errorf("shown is %q", shown)
			}
		})
	}
}

// TestClaimWaitBehindACommand: while a command runs the terminal is its own, however long a renewal waits for the claim.
func TestClaimWaitBehindACommand(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.on(200, "run", "--duration", "3s", "--", "sh", "-c", "echo token >"+claimFile+"; exec sleep 300")
	if status := p.Wait(); status != 124 {
		t.Errorf("status %d", status)
	}
	p.Drain()
	if shown := p.All(); strings.Contains(shown, "waiting for the claim,") {
		t.Errorf("shown is %q", shown)
	}
}
