package doctor

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"holdfast/pkg/finding"
	"holdfast/pkg/procid"
	"holdfast/pkg/regfile"
)

// Check is one thing that is looked at in every place.
type Check struct {
	Name       string
	LooksAt    string
	Conditions []string // the words of its findings beside those of the owning programs

	at    func(*examination, Place) []finding.Finding // of one place; nil when it looks at roots only
	root  func(*examination, string) []finding.Finding
	empty string // what is said when it found nothing to look at
}

// Checks are all of them, in the order in which they are reported.
func Checks() []Check {
	return []Check{
		{Name: "entry-types", LooksAt: "every protocol path: what must be a regular file, or a directory", Conditions: []string{"not-regular"}, at: entryTypes, empty: "there is no protocol path here"},
		{Name: "lease", LooksAt: "leases: shape, expiry, clock, stranded stages, journals", Conditions: []string{"clock-anomaly", "stranded-stage", "journal-damaged", "journal-unconfirmed"}, at: leases, empty: "there is no lease here"},
		{Name: "claims", LooksAt: "claim files: held, abandoned or unproven", Conditions: []string{"abandoned", "unproven"}, at: claims, empty: "there is no claim file here"},
		{Name: "fences", LooksAt: "owner claims: who could be admitted, and why not", Conditions: []string{"owner-dead", "reservation-abandoned"}, at: fences, empty: "there is no session directory here"},
		{Name: "reservations", LooksAt: "records and locations of citizens", at: gardens, empty: "there is no meta root here"},
		{Name: "registry", LooksAt: "rows, roots and locks of the service registry", Conditions: []string{"owner-dead", "root-missing", "root-replaced"}, at: registries, empty: "there is no state home here"},
		{Name: "permissions", LooksAt: "who may write to state, and read secrets", Conditions: []string{"writable-by-others", "readable-by-others", "foreign-owner"}, at: permissions, empty: "there is no state here"},
		{Name: "filesystem", LooksAt: "the kind of filesystem, its space, and whether it can be written", Conditions: []string{"shared-filesystem", "read-only", "no-space", "no-inodes"}, root: filesystem},
		{Name: "clock", LooksAt: "the wall clock against the times in the state: whether it is behind, or was set since the boot", Conditions: []string{"clock-behind", "clock-set"}, at: clock, empty: "there is no state here to compare the clock with"},
		{Name: "leftovers", LooksAt: "temporary files, copies of protocol files, git's index.lock", Conditions: []string{"leftover", "set-aside-file", "copy", "git-lock"}, at: leftovers, empty: "there is no state here"},
		{Name: "tools", LooksAt: "programs that what is declared here needs", Conditions: []string{"tool-missing"}, at: tools, empty: "nothing is declared that needs another program"},
		{Name: "exclusion", LooksAt: "a shared register that is declared", Conditions: []string{"register-unsupported"}, at: exclusion, empty: "nothing is declared"},
	}
}

// Nothing is the condition of a check that found nothing to look at: that is no omission, and not the same as having looked.
const Nothing = "nothing-there"

// Unresponsive is the condition of a place whose filesystem does not answer.
const Unresponsive = "unresponsive"

// Result is one finding of one check.
type Result struct {
	Check string
	finding.Finding
}

// examination is one run of the checks.
type examination struct {
	guard  *Guard
	self   *procid.Observer       // one look at this process's own place serves every verdict
	touch  func(path string) bool // says what is looked at next, and reports whether to do it
	passed *[]finding.Finding     // what touch has refused
}

// Examine runs the checks on every place at and below each root and tells each result: all of a check together, in the order
// of the checks. An error of each ends it.
func Examine(roots []string, checks []Check, guard *Guard, each func(Result) error) error {
	x := &examination{guard: guard, self: procid.NewObserver()}
	places, lost := x.places(roots)
	looked := slices.Clone(roots)
	for _, r := range lost { // what could not be looked into is said whichever checks were asked for
		if err := each(r); err != nil {
			return err
		}
		looked = slices.DeleteFunc(looked, func(root string) bool { return filepath.Clean(root) == r.Path })
	}
	for _, c := range checks {
		said := false
		err := x.run(c, roots, places, func(f finding.Finding) error {
			said = true
			return each(Result{c.Name, f})
		})
		if err == nil && !said && len(looked) > 0 {
			err = each(Result{c.Name, finding.Finding{Severity: finding.Pass, Condition: Nothing, Path: strings.Join(looked, " "), Detail: c.empty}})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// run runs one check in every place, and tells its results.
func (x *examination) run(c Check, roots []string, places []Place, tell func(finding.Finding) error) error {
	if c.root != nil {
		return everywhere(x, roots, func(root string) string { return root }, c.root, tell)
	}
	return everywhere(x, places, func(p Place) string { return p.Dir }, c.at, tell)
}

// everywhere looks at each thing. Where a path in one does not answer, that is told, and the thing is looked at once more, without
// that path.
func everywhere[T any](x *examination, things []T, pathOf func(T) string, look func(*examination, T) []finding.Finding, tell func(finding.Finding) error) error {
	var last T
	again, told := false, map[string]bool{}
	next := func() (T, bool) {
		if !again {
			if len(things) == 0 {
				return last, false
			}
			last, things = things[0], things[1:]
		}
		again = false
		return last, true
	}
	found := func(found []finding.Finding) error {
		for _, f := range found {
			if f.Condition == Unresponsive && told[f.Path] {
				continue
			}
			if err := tell(f); err != nil {
				return err
			}
		}
		return nil
	}
	lost := func(l Lost) error {
		told[l.Path] = true
		again = l.Waited && !x.guard.hangs.hopeless(pathOf(last))
		return tell(unanswered(l))
	}
	return Each(x.guard, next, pathOf, func(thing T, touch func(string), _ func(string, string)) []finding.Finding {
		mine := x.touching(touch)
		return append(withAsides(look(mine, thing)), *mine.passed...)
	}, found, lost)
}

// withAsides chooses names for what has to be moved away, here, where a filesystem that hangs does no harm.
func withAsides(found []finding.Finding) []finding.Finding {
	for i, f := range found {
		if f.Condition == regfile.CodeNotRegular || f.Condition == regfile.CodeDirectoryInvalid {
			found[i].Aside = regfile.Aside(f.Path)
		}
	}
	return found
}

func unanswered(l Lost) finding.Finding {
	return finding.Finding{Severity: finding.Fail, Condition: Unresponsive, Path: l.Path, Subject: l.Path, Detail: l.Detail()}
}

// touching is the examination as one thread does it.
func (x *examination) touching(touch func(string)) *examination {
	passed := &[]finding.Finding{}
	return &examination{guard: x.guard, self: x.self, passed: passed, touch: func(path string) bool {
		if x.guard.hangs.hopeless(path) {
			*passed = append(*passed, unanswered(Lost{Path: path}))
			return false
		}
		touch(path)
		return true
	}}
}

// UnknownCheck is a name that no check has.
type UnknownCheck string

func (e UnknownCheck) Error() string { return fmt.Sprintf("there is no check %q", string(e)) }

// Named picks checks by their names; nil names are all of them. The error is an UnknownCheck.
func Named(names []string) (picked []Check, err error) {
	all := Checks()
	if names == nil {
		return all, nil
	}
	for _, name := range names {
		i := slices.IndexFunc(all, func(c Check) bool { return c.Name == name })
		if i < 0 {
			return nil, UnknownCheck(name)
		}
		picked = append(picked, all[i])
	}
	return picked, nil
}
