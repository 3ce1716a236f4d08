package doctor

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"holdfast/pkg/fence"
	"holdfast/pkg/finding"
	"holdfast/pkg/regfile"
)

// Where is what a directory is to the protocols.
type Where string

// The places.
const (
	Leases    Where = "leases"     // a directory with lease files
	Session   Where = "session"    // a session directory
	StateHome Where = "state-home" // of the registry
	MetaRoot  Where = "meta-root"  // of citizens' records
	Fleet     Where = "fleet"      // a directory that declares something
	GitDir    Where = "git"        // a repository's .git
)

// Place is a directory that one of the protocols keeps state in.
type Place struct {
	Where Where
	Dir   string
	Names []string // of its entries
}

// places finds the places at and below the roots, symlinks not followed. What does not answer is a result.
func (x *examination) places(roots []string) (places []Place, lost []Result) {
	for _, root := range roots {
		stack := []string{root}
		for len(stack) > 0 {
			dir := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			var entries []fs.DirEntry
			var err error
			last, ok := x.guard.Do(dir, func(func(string)) { entries, err = os.ReadDir(dir) })
			switch {
			case !ok:
				lost = append(lost, Result{"entry-types", finding.Finding{Severity: finding.Fail, Condition: Unresponsive, Path: last, Subject: last, Detail: "its filesystem does not answer"}})
				continue
			case err != nil:
				lost = append(lost, Result{"entry-types", finding.Finding{Severity: finding.Fail, Condition: "unreadable", Path: dir, Subject: dir, Detail: regfile.Errno(reason(err))}})
				continue
			}
			found, inside := placesOf(dir, entries)
			places = append(places, found...)
			stack = append(stack, inside...)
		}
	}
	slices.SortFunc(places, func(a, b Place) int { return strings.Compare(a.Dir, b.Dir) })
	return places, lost
}

// reason is what is wrong with a path, without the path.
func reason(err error) error {
	if e, ok := err.(*fs.PathError); ok {
		return e.Err
	}
	return err
}

// placesOf says what a directory is, and which of its directories to go into.
func placesOf(dir string, entries []fs.DirEntry) (places []Place, below []string) {
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	has := func(name string) bool { _, found := slices.BinarySearch(names, name); return found }
	add := func(w Where) { places = append(places, Place{w, dir, names}) }
	stateHome := has("registry") && has("roots")
	switch {
	case stateHome:
		add(StateHome)
	case has(fence.ClaimName) || has(fence.TxName) || has(fence.HoldName):
		add(Session)
	case has("HEAD") && has("objects") && has("refs"):
		add(GitDir)
		return places, nil
	}
	if has("meta-sessions") {
		add(MetaRoot)
	}
	if slices.ContainsFunc(names, isLease) && filepath.Base(dir) == "state" {
		add(Leases)
	}
	if has("fleet.json") || has("package.json") {
		add(Fleet)
	}
	for _, e := range entries {
		if !e.IsDir() || stateHome || e.Name() == "node_modules" {
			continue
		}
		below = append(below, filepath.Join(dir, e.Name()))
	}
	return places, below
}

// isLease reports whether a name in a state directory is a lease file's, or lies beside one.
func isLease(name string) bool {
	return strings.HasSuffix(name, ".lock") || strings.HasSuffix(name, ".lock.mutex") || strings.HasSuffix(name, ".lock.journal") || strings.HasSuffix(name, ".lock.stage")
}

// leaseNames are the lease files of a state directory, also those of which only what lies beside is there.
func leaseNames(names []string) []string {
	var found []string
	for _, name := range names {
		if !isLease(name) {
			continue
		}
		base, _, _ := strings.Cut(name, ".lock")
		if lease := base + ".lock"; !slices.Contains(found, lease) {
			found = append(found, lease)
		}
	}
	return found
}
