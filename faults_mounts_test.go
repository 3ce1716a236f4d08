//go:build linux

package holdfast_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/internal/testkit/fusekit"
)

// machines are two mounts of one directory, each with kernel locks of its own: what one machine locks, the other does not see, as
// on a network filesystem whose locks are local.
func machines(t *testing.T) [2]string {
	t.Helper()
	one := fusekit.Mount(t, fusekit.Options{})
	other := fusekit.Mount(t, fusekit.Options{Backing: one.Backing})
	return [2]string{one.Dir, other.Dir}
}

// onBoth runs a program on both machines at once; args say what to run, given the directory.
func onBoth(t *testing.T, dirs [2]string, args func(i int, dir string) []string) [2]answer {
	t.Helper()
	one, other := begin(t, dirs[0], args(0, dirs[0])...), begin(t, dirs[1], args(1, dirs[1])...)
	return [2]answer{one(), other()}
}

// One holder at a time, although the kernel locks exclude nobody: what decides is the file that only one can create. # case B60
func TestLeaseExcludesWhereLocksAreLocal(t *testing.T) {
	t.Parallel()
	dirs := machines(t)
	won := [2]int{}
	for round := range 100 {
		said := onBoth(t, dirs, func(_ int, dir string) []string { return []string{"leasectl", "acquire", "--fleet", dir} })
		winner := 0
		if said[1].status == 0 {
			winner = 1
		}
		loser, holder := said[1-winner], said[winner].text("lease.holderId")
		if said[winner].status != 0 || loser.status == 0 || !slices.Contains([]string{"held", "changed", "claim-timeout"}, loser.text("code")) {
			t.Fatalf("round %d: %+v", round, said)
		}
		won[winner]++
		for _, dir := range dirs {
			ask(t, dir, "leasectl", "status", "--fleet", dir).is(0, "held").has("lease.holderId", holder)
		}
		ask(t, dirs[winner], "leasectl", "release", "--fleet", dirs[winner], "--holder", holder).is(0, "released")
	}
	t.Logf("won: %v", won)
	out, _ := exec.Command("fsdoctor", "check", "--only", "filesystem", dirs[0]).Output()
	if !strings.Contains(string(out), `"condition":"shared-filesystem"`) {
		t.Errorf("fsdoctor takes it for a local filesystem: %s", out)
	}
}

// The same of the fence: of two admissions at once to a directory, one. # case B60
func TestFenceExcludesWhereLocksAreLocal(t *testing.T) {
	t.Parallel()
	dirs := machines(t)
	tickets := t.TempDir()
	for round := range 30 {
		name := fmt.Sprintf("s%d", round)
		if err := os.Mkdir(filepath.Join(dirs[0], name), 0o700); err != nil {
			t.Fatal(err)
		}
		said := onBoth(t, dirs, func(i int, dir string) []string {
			return []string{"fencectl", "admit", "--dir", filepath.Join(dir, name), "--owner-pid", fmt.Sprint(os.Getpid()), "--ticket", filepath.Join(tickets, fmt.Sprintf("%s-%d", name, i))}
		})
		if (said[0].status == 0) == (said[1].status == 0) {
			t.Fatalf("round %d: %+v", round, said)
		}
	}
}
