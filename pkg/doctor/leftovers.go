package doctor

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"holdfast/pkg/fence"
	"holdfast/pkg/finding"
)

// copied are the names that file managers and synchronizers give to copies.
const copied = ` \(\d+\)| \d+| copy|\.sync-conflict-.*| \(.*conflicted copy.*\)|\.orig|\.bak|~`

// names tells names that somebody has left behind; it is made when it is first needed.
type names struct{ copy, copyBefore, stage *regexp.Regexp }

var leftBehind = sync.OnceValue(func() names {
	return names{
		copy:       regexp.MustCompile(`^(.*\.lock|entwurf-owner)(\.json|\.journal)?(` + copied + `)(\.json|\.lock)?$`),
		copyBefore: regexp.MustCompile(`^(.+?)(` + copied + `)\.lock$`),
		stage:      regexp.MustCompile(`^\..+\.lock(\.journal)?\.?(tmp|temp|swp|~).*$`),
	}
})

// leftovers look for what somebody has left behind beside the protocol files.
func leftovers(x *examination, p Place) (found []finding.Finding) {
	if p.Where == GitDir {
		return gitLock(x, p)
	}
	if p.Where != Leases && p.Where != Session {
		return nil
	}
	is := leftBehind()
	for _, name := range p.Names {
		f := finding.Finding{Severity: finding.Warn, Path: filepath.Join(p.Dir, name), Subject: p.Dir}
		switch {
		case strings.Contains(name, ".broken-"):
			f.Condition, f.Detail = "set-aside-file", "a broken file that was set aside; it may go when nobody needs it any more"
		case strings.HasPrefix(name, fence.ClaimName+".tmp-") || p.Where == Leases && is.stage.MatchString(name):
			f.Condition, f.Detail = "leftover", "the stage of a write that was killed, or is under way"
		case is.copy.MatchString(name):
			f.Condition, f.Detail = "copy", "a copy of a protocol file, which no program reads"
		case p.Where == Leases && isCopy(is.copyBefore.FindStringSubmatch(name), p.Names):
			f.Condition, f.Token, f.Detail = "copy", "lease", "it looks like a copy of the lease beside it, and is a lease of its own: only the exact name counts"
		default:
			continue
		}
		found = append(found, f)
	}
	if len(found) == 0 {
		found = append(found, finding.Finding{Severity: finding.Pass, Condition: "tidy", Path: p.Dir, Subject: p.Dir, Detail: "nothing was left behind"})
	}
	return found
}

// isCopy reports whether the name that was matched is one beside the lease that it is a copy of.
func isCopy(match, beside []string) bool {
	return match != nil && slices.Contains(beside, match[1]+".lock")
}
