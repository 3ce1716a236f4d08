package doctor

import (
	"fmt"
	"os"
	"path/filepath"

	"holdfast/pkg/finding"
	"holdfast/pkg/regfile"
)

// permissions look at who may write to state, and read what is secret.
func permissions(x *examination, p Place) (found []finding.Finding) {
	look := func(path string) (st regfile.Stamp, there bool) {
		if !x.touch(path) {
			return st, false
		}
		st, err := regfile.Lstat(path)
		return st, err == nil && (st.Kind == regfile.Regular || st.Kind == regfile.Directory)
	}
	looked := 0
	for _, path := range x.keptPrivate(p) {
		st, there := look(path)
		if !there {
			continue
		}
		looked++
		if f := permission(p, path, st); f != nil {
			found = append(found, *f)
		}
	}
	if looked > 0 && len(found) == 0 {
		found = append(found, finding.Finding{Severity: finding.Pass, Condition: "private", Path: p.Dir, Subject: p.Dir, Detail: fmt.Sprintf("%d files and directories, none of which others may write to", looked)})
	}
	return found
}

// keptPrivate are the paths of a place whose permissions matter.
func (x *examination) keptPrivate(p Place) []string {
	paths := x.protocolPaths(p)
	if p.Where == Leases || p.Where == Session {
		paths = append(paths, p.Dir) // who may write to it may replace what is in it
	}
	return paths
}

// homePaths are a state home itself, and every directory and every file in it, the capabilities and receipts among them.
func (x *examination) homePaths(p Place) []string {
	paths := []string{p.Dir}
	stack := []string{filepath.Join(p.Dir, "registry"), filepath.Join(p.Dir, "roots"), filepath.Join(p.Dir, "receipts"), filepath.Join(p.Dir, "stage")}
	for len(stack) > 0 {
		dir := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		paths = append(paths, dir)
		if !x.touch(dir) {
			continue
		}
		if st, err := regfile.Lstat(dir); err != nil || st.Kind != regfile.Directory {
			continue // a link would lead out of the state home
		}
		entries, _ := os.ReadDir(dir) // what cannot be read is the registry's to say
		for _, e := range entries {
			if path := filepath.Join(dir, e.Name()); e.IsDir() {
				stack = append(stack, path)
			} else {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

func permission(p Place, path string, st regfile.Stamp) *finding.Finding {
	f := &finding.Finding{Severity: finding.Warn, Path: path, Subject: path, Detail: fmt.Sprintf("mode %04o, of uid %d", st.Perm(), st.UID)}
	directory := path == p.Dir && p.Where != StateHome // anybody may look into one
	switch {
	case p.Where != Leases && !directory && st.Perm()&0o077 != 0:
		f.Severity, f.Condition = finding.Fail, "readable-by-others"
	case st.Perm()&0o022 != 0:
		f.Condition = "writable-by-others"
	case st.UID != uint32(os.Geteuid()) && os.Geteuid() != 0:
		f.Condition = "foreign-owner"
	default:
		return nil
	}
	return f
}
