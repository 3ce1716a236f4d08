//go:build linux

package losstest

import (
	"testing"

	"holdfast/internal/testkit"
)

// forks is a process that gives way to a copy of itself all the time and stamps in each life. It ignores SIGTERM.
const forks = `perl -MTime::HiRes=time -e '
	$SIG{TERM} = "IGNORE"; $end = time + 60;
	open F, ">>", $ENV{LOSS_STAMPS}; select F; $| = 1;
	while (time < $end) {
		printf "forks %.0f 0\n", time * 1e9 if $n++ % 16 == 0;
		exit if fork;
	}'`

// breeds is a process that starts children all the time, each of which lives for a while. All of them ignore SIGTERM.
const breeds = `perl -MTime::HiRes=time,sleep -e '
	$SIG{TERM} = "IGNORE"; $SIG{CHLD} = "IGNORE"; $end = time + 60;
	open F, ">>", $ENV{LOSS_STAMPS}; select F; $| = 1;
	while (time < $end) {
		unless (fork) { printf "breeds %.0f 0\n", time * 1e9 and sleep 0.05 for 1..10; exit }
		sleep 0.02;
	}'`

// TestEverythingBelowIsOver: wherever the command's processes went, nothing of them runs when the lease is over, although
// they ignore SIGTERM and the renewals fail only because this run sees a read-only disk. Each tree ends in a process that
// waits.
func TestEverythingBelowIsOver(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script string
		stamping     []string // names that must have stamped
		tool         string
	}{
		{"children", `stamp a deaf & stamp b deaf & exec stamp c deaf`, []string{"a", "b", "c"}, ""},
		{"the shell is gone", `stamp a deaf & (stamp b deaf &) ; exec stamp c`, []string{"a", "b", "c"}, ""},
		{"sessions of their own", `setsid stamp a deaf & setsid -f stamp b deaf; exec setsid -w stamp c deaf`, []string{"a", "b", "c"}, "setsid"},
		{"daemons", `setsid sh -c 'setsid sh -c "cd /; exec stamp a deaf <&- >&- 2>&-" & exit' & stamp b deaf & exec stamp c`,
			[]string{"a", "b", "c"}, "setsid"},
		{"a pid namespace that ends with its parent",
			`exec unshare --pid --fork --kill-child sh -c "stamp a deaf & setsid stamp b deaf & exec stamp c deaf"`, []string{"a", "b", "c"}, "unshare"},
		{"a pid namespace that does not",
			`unshare --pid --fork sh -c "stamp a deaf & setsid -f stamp b deaf; exec stamp c deaf" & exec stamp d`, []string{"a", "b", "c", "d"}, "unshare"},
		{"pid namespaces in pid namespaces",
			`unshare --pid --fork sh -c "unshare --pid --fork sh -c 'stamp a deaf & exec stamp b deaf' & exec stamp c deaf" & exec stamp d`, []string{"a", "b", "c", "d"}, "unshare"},
		{"one that breeds", breeds, []string{"breeds"}, "perl"},
		{"one that forks on and on", `(` + forks + `) & exec stamp c deaf`, []string{"forks", "c"}, "perl"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			if c.tool != "" {
				testkit.NeedTool(t, c.tool)
			}
			jam, _ := s.runApart("sh", "-c", c.script)
			s.await("everybody's stamps", func() bool {
				all := s.stamps()
				for _, name := range c.stamping {
					if all[name].count == 0 {
						return false
					}
				}
				return true
			})
			jam()
			other := s.contend()
			s.lost("renewal-overdue")
			other.wins()
			for _, name := range c.stamping {
				if n := s.stamps()[name].count; n < 10 {
					t.Errorf("%s has stamped only %d times", name, n)
				}
			}
		})
	}
}
