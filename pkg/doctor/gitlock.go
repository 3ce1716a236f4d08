package doctor

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"holdfast/pkg/finding"
	"holdfast/pkg/regfile"
)

// youngLock is how old git's lock must be to be taken for one that was left behind. A git that waits for an editor keeps it for as
// long as that takes, without having it open.
const youngLock = 10 * time.Minute

// gitLock is a repository's index.lock, which a killed git leaves.
func gitLock(x *examination, p Place) []finding.Finding {
	path := filepath.Join(p.Dir, "index.lock")
	if !x.touch(path) {
		return nil
	}
	st, err := regfile.Lstat(path)
	if err != nil {
		return nil
	}
	f := finding.Finding{Severity: finding.Warn, Condition: "git-lock", Path: path, Subject: path}
	if st.Kind != regfile.Regular {
		f.Condition, f.Detail = regfile.CodeNotRegular, "git's lock is "+st.Kind.Noun()+", not a regular file"
		return []finding.Finding{f}
	}
	age := time.Since(st.Mtime).Round(time.Second)
	lock := fmt.Sprintf("git's lock, %d bytes, %s old", st.Size, age)
	pids, all := openers(st)
	gits, allGits := gitsIn(worktrees(p.Dir))
	switch {
	case len(pids) > 0:
		f.Detail = fmt.Sprintf("in use: %s, open in pid %v", lock, pids)
		f.Severity = finding.Pass
	case len(gits) > 0:
		f.Detail = fmt.Sprintf("in use: %s, and git works there as pid %v", lock, gits)
		f.Severity = finding.Pass
	case age < youngLock:
		f.Detail = fmt.Sprintf("perhaps in use: %s; a git keeps it while it waits for an editor", lock)
	case all && allGits:
		f.Detail = fmt.Sprintf("likely stale: %s; nobody has it open, and no git works there", lock)
		f.Token = "stale"
	default:
		f.Detail = fmt.Sprintf("%s; whether somebody has it open cannot be seen", lock)
	}
	return []finding.Finding{f}
}

// worktrees are the directories in which a git may be at work that has the lock of a git directory: that itself, the working tree
// around it, and for another working tree where it says that this is.
func worktrees(dir string) []string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil
	}
	trees := []string{abs}
	if top, _, found := strings.Cut(abs+"/", "/.git/"); found {
		trees = append(trees, top)
	}
	d, err := regfile.OpenDir(abs)
	if err != nil {
		return trees
	}
	defer d.Close()
	if snap, err := d.Read("gitdir", regfile.DefaultLimit); err == nil {
		trees = append(trees, filepath.Dir(strings.TrimSpace(string(snap.Bytes))))
	}
	return trees
}
