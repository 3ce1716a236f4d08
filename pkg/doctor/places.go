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
	GitDir    Where = "git"        // a repository's .git, or what it has for a submodule or a working tree
)

// Place is a directory that one of the protocols keeps state in.
type Place struct {
	Where Where
	Dir   string
	Names []string // of its entries
}

// places finds the places at and below the roots, symlinks not followed but a fleet's state. What does not answer is a result.
func (x *examination) places(roots []string) (places []Place, lost []Result) {
	say := func(f finding.Finding) {
		lost = append(lost, Result{"entry-types", withAsides([]finding.Finding{f})[0]})
	}
	fail := func(condition, path, detail string) {
		say(finding.Finding{Severity: finding.Fail, Condition: condition, Path: path, Subject: path, Detail: detail})
	}
	for _, root := range roots {
		stack := []stop{{dir: filepath.Clean(root), root: true}}
		for len(stack) > 0 {
			at := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			seen := &sight{}
			if silent := x.guard.Do(at.dir, func(touch func(string)) { seen.look(&at, touch) }); silent != nil {
				say(unanswered(*silent))
				continue
			}
			if seen.err != nil {
				fail("unreadable", at.dir, regfile.Errno(reason(seen.err)))
				continue
			}
			if seen.state != nil {
				fail(finding.CodeOf(seen.state), filepath.Join(at.dir, stateName), seen.state.Error())
			}
			found, inside := placesOf(at, seen)
			places = append(places, found...)
			stack = append(stack, inside...)
		}
	}
	slices.SortFunc(places, func(a, b Place) int { return strings.Compare(a.Dir, b.Dir) })
	return places, lost
}

// sight is what was seen of a directory.
type sight struct {
	entries []fs.DirEntry
	err     error
	linked  bool  // its state is a link to a directory
	state   error // what is wrong with what is called state, and is no directory

	worktree string // the directory that git keeps for it elsewhere
}

// look reads a directory, and follows what is called state, as leasectl does. A file of that name is nobody's mistake but in a root.
func (s *sight) look(at *stop, touch func(string)) {
	s.entries, s.err = os.ReadDir(at.dir)
	if at.root {
		st, err := regfile.Lstat(at.dir + ".lock")
		at.native = err == nil && st.Kind == regfile.Directory
		s.worktree = gitDirOf(at.dir, s.entries)
	}
	i := slices.IndexFunc(s.entries, func(e fs.DirEntry) bool { return e.Name() == stateName && !e.IsDir() })
	if i < 0 || s.entries[i].Type().IsRegular() && !at.root {
		return
	}
	path := filepath.Join(at.dir, stateName)
	touch(path)
	d, err := regfile.OpenDir(path)
	if s.linked, s.state = err == nil, err; s.linked {
		d.Close()
	}
}

// gitDirOf is where git keeps what belongs to a working tree that is not the repository's first: a file .git there says it.
func gitDirOf(dir string, entries []fs.DirEntry) string {
	if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ".git" && e.Type().IsRegular() }) {
		return ""
	}
	d, err := regfile.OpenDir(dir)
	if err != nil {
		return ""
	}
	defer d.Close()
	snap, err := d.Read(".git", regfile.DefaultLimit)
	if err != nil {
		return ""
	}
	path, found := strings.CutPrefix(strings.TrimRight(string(snap.Bytes), "\n"), "gitdir: ")
	if !found {
		return ""
	}
	return filepath.Clean(Leads(filepath.Join(dir, ".git"), path))
}

// stateName is what a fleet calls the directory of its leases.
const stateName = "state"

// reason is what is wrong with a path, without the path.
func reason(err error) error {
	if e, ok := err.(*fs.PathError); ok {
		return e.Err
	}
	return err
}

// stop is a directory on the way.
type stop struct {
	dir    string
	root   bool
	native bool // a native lease lies beside it
	link   bool // a fleet's state: of what is behind the link only the leases are looked at
}

// placesOf says what a directory is, and which of its directories to go into.
func placesOf(at stop, seen *sight) (places []Place, below []stop) {
	dir := at.dir
	names := make([]string, len(seen.entries))
	for i, e := range seen.entries {
		names[i] = e.Name()
	}
	has := func(name string) bool { _, found := slices.BinarySearch(names, name); return found }
	add := func(w Where) { places = append(places, Place{w, dir, names}) }
	if at.link {
		if keepsLeases(dir, names) {
			add(Leases)
		}
		return places, nil
	}
	stateHome := has("registry") && has("roots")
	switch {
	case stateHome:
		add(StateHome)
	case has(fence.ClaimName) || has(fence.TxName) || has(fence.HoldName) || at.native:
		add(Session)
	case has("HEAD") && has("objects") && has("refs"):
		add(GitDir)
		for _, inside := range []string{"modules", "worktrees"} {
			if has(inside) {
				below = append(below, stop{dir: filepath.Join(dir, inside)})
			}
		}
		return places, below
	case has("HEAD") && has("commondir"):
		add(GitDir)
		return places, nil
	}
	if seen.worktree != "" {
		places = append(places, Place{Where: GitDir, Dir: seen.worktree})
	}
	if has("meta-sessions") {
		add(MetaRoot)
	}
	if keepsLeases(dir, names) {
		add(Leases)
	}
	if has("fleet.json") || has("package.json") {
		add(Fleet)
	}
	if seen.linked {
		below = append(below, stop{dir: filepath.Join(dir, stateName), link: true})
	}
	for _, e := range seen.entries {
		if e.IsDir() && !stateHome && e.Name() != "node_modules" {
			beside, found := slices.BinarySearch(names, e.Name()+".lock")
			below = append(below, stop{dir: filepath.Join(dir, e.Name()), native: found && seen.entries[beside].IsDir()})
		}
	}
	return places, below
}

// keepsLeases reports whether a directory's lock files are leases: it has the name that fleets give it, or what lies beside a
// lease. A Cargo.lock alone is none.
func keepsLeases(dir string, names []string) bool {
	if !slices.ContainsFunc(names, isLease) {
		return false
	}
	if abs, err := filepath.Abs(dir); err == nil && filepath.Base(abs) == stateName {
		return true
	}
	return slices.ContainsFunc(names, func(name string) bool {
		return strings.HasSuffix(name, ".lock.journal") || strings.HasSuffix(name, ".lock.mutex") || strings.HasSuffix(name, ".lock.stage")
	})
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
