package supervise

import (
	"strings"
	"testing"

	"holdfast/internal/testkit"
)

// TestStrangersAreLeftAlone: what the shell had started before it executed the wrapper in its own place, and what that starts
// later, is not counted, not signalled and not waited for, at an ordinary end and at a loss.
func TestStrangersAreLeftAlone(t *testing.T) {
	const (
		jobs = "sleep 300 & sh -c 'until test -e begun; do sleep 0.01; done; sleep 300 & touch grown; wait' & " // 3 processes
		own  = "touch begun; until test -e grown; do sleep 0.01; done; "
	)
	for name, c := range map[string]struct {
		wrapper string
		want    string
		left    int
	}{
		"nothing else":        {"run-to-end sh -c '" + own + "exit 3'", "3 0 0\n", 3},
		"the command's own":   {"run-to-end sh -c '" + own + "sleep 300 & exit 3'", "3 0 1\n", 4},
		"a loss":              {"end-at-ready 20s sh -c '" + own + "touch ready; exec sleep 300'", "terminating true\nleft 0 false\n", 3},
		"a loss with a child": {"end-at-ready 8s sh -c '" + own + "sleep 300 & touch ready; wait'", "terminating true\nterminating true\nleft 0 false\n", 3},
		"a loss to the deaf": {
			"end-at-ready 800ms sh -c 'trap \"\" TERM; " + own + "sleep 300 & touch ready; while :; do sleep 0.01; done'",
			"terminating true\nterminating true\nkilling true\nleft 0 false\n", 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, mark := play(t, t.TempDir(), "sh", "-c", jobs+"exec "+c.wrapper)
			if out != c.want {
				t.Errorf("it said %q, want %q", out, c.want)
			}
			testkit.Eventually(t, "those that are left show", func() bool { return len(mark.Processes()) == c.left })
		})
	}
}

// TestStrangersByStartTime: a pid that was a stranger's and is another process's now is no stranger.
func TestStrangersByStartTime(t *testing.T) {
	fields := strings.Fields("S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 12345 0")
	for noted, want := range map[string]bool{"12345": true, "12344": false, "": false} {
		if got := (strangers{40: noted}).has(40, fields); got != want {
			t.Errorf("started at %q: %v", noted, got)
		}
	}
	if (strangers{41: "12345"}).has(40, fields) || (strangers{40: "12345"}).has(40, nil) {
		t.Error("one that is none")
	}
}
