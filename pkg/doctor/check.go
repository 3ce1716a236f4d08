package doctor

import (
	"slices"
	"strings"

	"holdfast/pkg/finding"
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
		{Name: "fences", LooksAt: "owner claims: who could be admitted, and why not", Conditions: []string{"owner-dead", "reservation-abandoned", "temp"}, at: fences, empty: "there is no session directory here"},
		{Name: "reservations", LooksAt: "records and locations of citizens", at: gardens, empty: "there is no meta root here"},
		{Name: "registry", LooksAt: "rows, roots and locks of the service registry", Conditions: []string{"owner-dead", "root-missing", "root-replaced"}, at: registries, empty: "there is no state home here"},
		{Name: "permissions", LooksAt: "who may write to state, and read secrets", Conditions: []string{"writable-by-others", "readable-by-others", "foreign-owner"}, at: permissions, empty: "there is no state here"},
		{Name: "filesystem", LooksAt: "the kind of filesystem, its space, and whether it can be written", Conditions: []string{"shared-filesystem", "read-only", "no-space", "no-inodes"}, root: filesystem},
		{Name: "clock", LooksAt: "the wall clock against the newest file of the state", Conditions: []string{"clock-behind"}, at: clock, empty: "there is no state here to compare the clock with"},
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
	guard *Guard
	touch func(string)
}

// Examine runs the checks on every place at and below each root and tells each result: all of a check together, in the order
// of the checks. An error of each ends it.
func Examine(roots []string, checks []Check, guard *Guard, each func(Result) error) error {
	x := &examination{guard: guard}
	places, lost := x.places(roots)
	for _, c := range checks {
		results := x.run(c, roots, places)
		if c.Name == "entry-types" {
			results = append(lost, results...)
		}
		if len(results) == 0 {
			results = []Result{{c.Name, finding.Finding{Severity: finding.Pass, Condition: Nothing, Path: strings.Join(roots, " "), Detail: c.empty}}}
		}
		for _, r := range results {
			if err := each(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// run runs one check in every place. A place that does not answer is said, and left.
func (x *examination) run(c Check, roots []string, places []Place) (results []Result) {
	do := func(path string, look func(*examination) []finding.Finding) {
		var found []finding.Finding
		last, ok := x.guard.Do(path, func(touch func(string)) { found = look(&examination{guard: x.guard, touch: touch}) })
		if !ok {
			found = []finding.Finding{{Severity: finding.Fail, Condition: Unresponsive, Path: last, Subject: last, Detail: "its filesystem does not answer"}}
		}
		for _, f := range found {
			results = append(results, Result{c.Name, f})
		}
	}
	for _, root := range roots {
		if c.root != nil {
			do(root, func(x *examination) []finding.Finding { return c.root(x, root) })
		}
	}
	for _, p := range places {
		if c.at != nil {
			do(p.Dir, func(x *examination) []finding.Finding { return c.at(x, p) })
		}
	}
	return results
}

// Named picks checks by their names; nil names are all of them. unknown is the first name that is none.
func Named(names []string) (picked []Check, unknown string) {
	all := Checks()
	if names == nil {
		return all, ""
	}
	for _, name := range names {
		i := slices.IndexFunc(all, func(c Check) bool { return c.Name == name })
		if i < 0 {
			return nil, name
		}
		picked = append(picked, all[i])
	}
	return picked, ""
}
