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
	all = true
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(processes) == 0 {
		return nil, false
	}
	for _, process := range processes {
		entries, err := os.ReadDir(filepath.Join(process, "fd"))
		if err != nil {
			all = all && os.IsNotExist(err)
			continue
		}
		for _, e := range entries {
			target, err := os.Readlink(filepath.Join(process, "fd", e.Name()))
			if err != nil || !strings.HasSuffix(target, "/index.lock") {
				continue
			}
			now, err := regfile.Lstat(target)
			pid, numErr := strconv.Atoi(filepath.Base(process))
			if err == nil && numErr == nil && now.SameFile(st) && !slices.Contains(pids, pid) {
				pids = append(pids, pid)
			}
		}
	}
	return pids, all
}

// gitsIn are the pids of gits whose working directory is one of the trees or below it, as far as /proc shows them; all reports
// whether every git could be looked at.
func gitsIn(trees []string) (pids []int, all bool) {
	all = true
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(processes) == 0 {
		return nil, false
	}
	for _, process := range processes {
		name, _ := os.ReadFile(filepath.Join(process, "comm"))
		if text := strings.TrimSpace(string(name)); text != "git" && !strings.HasPrefix(text, "git-") {
			continue
		}
		cwd, err := os.Readlink(filepath.Join(process, "cwd"))
		if err != nil {
			all = all && os.IsNotExist(err)
			continue
		}
		in := func(tree string) bool { return strings.HasPrefix(cwd+"/", tree+"/") }
		if pid, err := strconv.Atoi(filepath.Base(process)); err == nil && slices.ContainsFunc(trees, in) {
			pids = append(pids, pid)
		}
	}
	return pids, all
}
