package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"holdfast/pkg/regfile"
)

// openers are the pids that have a file open by its own name, as far as /proc shows them; all reports whether every process
// could be looked at. Links alone are read: the files of strangers may lie on a disk that does not answer.
func openers(st regfile.Stamp) (pids []int, all bool) {
	return processes(func(process string) (bool, error) {
		entries, err := os.ReadDir(filepath.Join(process, "fd"))
		for _, e := range entries {
			target, err := os.Readlink(filepath.Join(process, "fd", e.Name()))
			if err != nil || !strings.HasSuffix(target, "/index.lock") {
				continue
			}
			if now, err := regfile.Lstat(target); err == nil && now.SameFile(st) {
				return true, nil
			}
		}
		return false, err
	})
}

// gitsIn are the pids of gits whose working directory is one of the trees or below it, as far as /proc shows them; all reports
// whether every git could be looked at.
func gitsIn(trees []string) (pids []int, all bool) {
	return processes(func(process string) (bool, error) {
		name, _ := os.ReadFile(filepath.Join(process, "comm"))
		if text := strings.TrimSpace(string(name)); text != "git" && !strings.HasPrefix(text, "git-") {
			return false, nil
		}
		cwd, err := os.Readlink(filepath.Join(process, "cwd"))
		in := func(tree string) bool { return strings.HasPrefix(cwd+"/", tree+"/") }
		return err == nil && slices.ContainsFunc(trees, in), err
	})
}

// processes are the pids of those that fit, given the directory in /proc; all reports whether none but processes that have ended
// could not be looked at.
func processes(fits func(dir string) (bool, error)) (pids []int, all bool) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(dirs) == 0 {
		return nil, false
	}
	all = true
	for _, dir := range dirs {
		fit, err := fits(dir)
		if err != nil {
			all = all && os.IsNotExist(err)
		}
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil && fit {
			pids = append(pids, pid)
		}
	}
	return pids, all
}
