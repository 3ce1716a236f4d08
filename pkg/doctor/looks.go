package doctor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"holdfast/pkg/claim"
	"holdfast/pkg/fence"
	"holdfast/pkg/finding"
	"holdfast/pkg/lease"
	"holdfast/pkg/regfile"
	"holdfast/pkg/registry"
)

// protocolNames are the names in a place that must be regular files.
func (p Place) protocolNames() (names []string) {
	for _, name := range p.Names {
		switch {
		case p.Where == Leases && isLease(name), p.Where == Session && strings.HasPrefix(name, "entwurf-owner."):
			names = append(names, name)
		}
	}
	return names
}

func entryTypes(x *examination, p Place) (found []finding.Finding) {
	for _, name := range p.protocolNames() {
		path := filepath.Join(p.Dir, name)
		x.touch(path)
		st, err := regfile.Lstat(path)
		switch {
		case regfile.IsAbsent(err):
		case err != nil:
			found = append(found, finding.Finding{Severity: finding.Fail, Condition: finding.CodeOf(err), Path: path, Subject: path, Detail: err.Error()})
		case st.Kind != regfile.Regular:
			found = append(found, finding.Finding{Severity: finding.Fail, Condition: regfile.CodeNotRegular, Path: path, Subject: path, Detail: "it is " + st.Kind.Noun() + ", not a regular file"})
		}
	}
	if len(found) == 0 && len(p.protocolNames()) > 0 {
		found = append(found, finding.Finding{Severity: finding.Pass, Condition: string(regfile.Regular), Path: p.Dir, Subject: p.Dir, Detail: fmt.Sprintf("%d protocol files, all regular", len(p.protocolNames()))})
	}
	return found
}

func leases(x *examination, p Place) (found []finding.Finding) {
	if p.Where != Leases {
		return nil
	}
	for _, name := range leaseNames(p.Names) {
		path := filepath.Join(p.Dir, name)
		x.touch(path)
		found = append(found, lease.Diagnose(path, lease.Options{})...)
	}
	return found
}

func fences(x *examination, p Place) []finding.Finding {
	if p.Where != Session {
		return nil
	}
	x.touch(p.Dir)
	return fence.Diagnose(p.Dir, fence.Options{})
}

func registries(x *examination, p Place) []finding.Finding {
	if p.Where != StateHome {
		return nil
	}
	x.touch(p.Dir)
	return registry.Diagnose(p.Dir, registry.Options{})
}

func gardens(x *examination, p Place) (found []finding.Finding) {
	if p.Where != MetaRoot {
		return nil
	}
	dir := filepath.Join(p.Dir, "meta-sessions")
	x.touch(dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return []finding.Finding{{Severity: finding.Fail, Condition: "unreadable", Path: dir, Subject: p.Dir, Detail: regfile.Errno(reason(err))}}
	}
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".meta.json")
		if !ok || !fence.ValidGardenID(id) {
			continue
		}
		abs, err := filepath.Abs(p.Dir)
		if err != nil {
			continue
		}
		x.touch(filepath.Join(dir, e.Name()))
		found = append(found, fence.DiagnoseGarden(fence.Garden{ID: id, MetaRoot: abs}))
	}
	return found
}

// claims looks at the claim files of a place.
func claims(x *examination, p Place) (found []finding.Finding) {
	var names []string
	switch p.Where {
	case Leases:
		for _, name := range p.Names {
			if strings.HasSuffix(name, ".lock.mutex") {
				names = append(names, name)
			}
		}
	case Session:
		names = []string{fence.TxName}
	}
	for _, name := range names {
		x.touch(filepath.Join(p.Dir, name))
		if f := claimFinding(p, name); f != nil {
			found = append(found, *f)
		}
	}
	return found
}

func claimFinding(p Place, name string) *finding.Finding {
	path := filepath.Join(p.Dir, name)
	f := &finding.Finding{Severity: finding.Fail, Path: path, Subject: strings.TrimSuffix(path, ".mutex")}
	if p.Where == Session {
		f.Subject = p.Dir
	}
	d, err := regfile.OpenDir(p.Dir)
	if err == nil {
		defer d.Close()
		var in claim.Inspection
		if in, err = claim.Inspect(d, name); err == nil {
			if in.State == claim.Absent {
				return nil
			}
			f.Condition, f.Detail, f.Token, f.Fingerprint = string(in.State), in.Describe()+": "+in.Reason, in.Token, in.Fingerprint
			if in.State == claim.HeldNow {
				f.Severity = finding.Pass
			}
			return f
		}
	}
	f.Condition, f.Detail = finding.CodeOf(err), err.Error()
	return f
}

// permissions look at who may write to state, and read what is secret.
func permissions(x *examination, p Place) (found []finding.Finding) {
	names := p.protocolNames()
	if p.Where == StateHome {
		names = []string{"registry", "roots", "receipts", "stage"}
	}
	looked := 0
	for _, name := range names {
		path := filepath.Join(p.Dir, name)
		x.touch(path)
		st, err := regfile.Lstat(path)
		if err != nil || st.Kind == regfile.Symlink {
			continue
		}
		looked++
		if f := permission(p, path, st); f != nil {
			found = append(found, *f)
		}
	}
	if looked > 0 && len(found) == 0 {
		found = append(found, finding.Finding{Severity: finding.Pass, Condition: "private", Path: p.Dir, Subject: p.Dir, Detail: fmt.Sprintf("%d files, none of which others may write to", looked)})
	}
	return found
}

func permission(p Place, path string, st regfile.Stamp) *finding.Finding {
	f := &finding.Finding{Severity: finding.Warn, Path: path, Subject: path, Detail: fmt.Sprintf("mode %04o, of uid %d", st.Perm(), st.UID)}
	switch {
	case p.Where != Leases && st.Perm()&0o077 != 0:
		f.Severity, f.Condition = finding.Fail, "readable-by-others"
	case st.Perm()&0o002 != 0:
		f.Condition = "writable-by-others"
	case st.UID != uint32(os.Geteuid()) && os.Geteuid() != 0:
		f.Condition = "foreign-owner"
	default:
		return nil
	}
	return f
}

// clockSlack is how far a file may seem to come from the future.
const clockSlack = 5 * time.Second

func clock(x *examination, p Place) []finding.Finding {
	var newest time.Time
	at := ""
	for _, name := range p.protocolNames() {
		path := filepath.Join(p.Dir, name)
		x.touch(path)
		if st, err := regfile.Lstat(path); err == nil && st.Mtime.After(newest) {
			newest, at = st.Mtime, path
		}
	}
	if at == "" {
		return nil
	}
	ahead := time.Until(newest)
	if ahead > clockSlack {
		return []finding.Finding{{Severity: finding.Warn, Condition: "clock-behind", Path: at, Subject: at,
			Detail: fmt.Sprintf("it was written %s in the future: this clock is behind, or another's was ahead", ahead.Round(time.Second))}}
	}
	return []finding.Finding{{Severity: finding.Pass, Condition: "clock", Path: p.Dir, Subject: p.Dir, Detail: "nothing here comes from the future"}}
}

// copied are the names that file managers and synchronizers give to copies.
var copied = []string{` \(\d+\)`, ` \d+`, ` copy`, `\.sync-conflict-.*`, ` \(.*conflicted copy.*\)`, `\.orig`, `\.bak`, `~`}

// leftovers look for what somebody has left behind beside the protocol files.
func leftovers(x *examination, p Place) (found []finding.Finding) {
	if p.Where == GitDir {
		return gitLock(x, p)
	}
	if p.Where != Leases && p.Where != Session {
		return nil
	}
	copyOf := regexp.MustCompile(`^(.*\.lock|entwurf-owner)(\.json|\.journal)?(` + strings.Join(copied, "|") + `)(\.json|\.lock)?$`)
	for _, name := range p.Names {
		f := finding.Finding{Severity: finding.Warn, Path: filepath.Join(p.Dir, name), Subject: p.Dir}
		switch {
		case strings.Contains(name, ".broken-"):
			f.Condition, f.Detail = "set-aside-file", "a broken file that was set aside; it may go when nobody needs it any more"
		case strings.HasPrefix(name, fence.ClaimName+".tmp-"):
			f.Condition, f.Detail = "leftover", "the stage of a write that was killed, or is under way"
		case copyOf.MatchString(name):
			f.Condition, f.Detail = "copy", "a copy of a protocol file, which no program reads"
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

// gitLock is a repository's index.lock, which a killed git leaves.
func gitLock(x *examination, p Place) []finding.Finding {
	path := filepath.Join(p.Dir, "index.lock")
	x.touch(path)
	st, err := regfile.Lstat(path)
	if err != nil {
		return nil
	}
	f := finding.Finding{Severity: finding.Warn, Condition: "git-lock", Path: path, Subject: path}
	age := time.Since(st.Mtime).Round(time.Second)
	if st.Kind != regfile.Regular {
		f.Condition, f.Detail = regfile.CodeNotRegular, "git's lock is "+st.Kind.Noun()+", not a regular file"
		return []finding.Finding{f}
	}
	switch pids, all := openers(st); {
	case len(pids) > 0:
		f.Detail = fmt.Sprintf("in use: git's lock, %d bytes, %s old, open in pid %v", st.Size, age, pids)
		f.Severity = finding.Pass
	case all:
		f.Detail = fmt.Sprintf("likely stale: git's lock, %d bytes, %s old, and nobody has it open", st.Size, age)
		f.Token = "stale"
	default:
		f.Detail = fmt.Sprintf("git's lock, %d bytes, %s old; whether somebody has it open cannot be seen", st.Size, age)
	}
	return []finding.Finding{f}
}

// declares reports whether a fleet declares a shared register.
func declares(x *examination, p Place) (path string, declared bool) {
	if p.Where != Fleet {
		return "", false
	}
	for _, name := range []string{"fleet.json", "package.json"} {
		path := filepath.Join(p.Dir, name)
		x.touch(path)
		d, err := regfile.OpenDir(p.Dir)
		if err != nil {
			return "", false
		}
		snap, err := d.Read(name, regfile.DefaultLimit)
		d.Close()
		if err == nil && strings.Contains(string(snap.Bytes), "sharedExclusion") {
			return path, true
		}
	}
	return "", false
}

func tools(x *examination, p Place) []finding.Finding {
	path, declared := declares(x, p)
	if !declared {
		return nil
	}
	if _, err := exec.LookPath("git"); err != nil {
		return []finding.Finding{{Severity: finding.Fail, Condition: "tool-missing", Path: path, Subject: "git", Detail: "a shared register is declared, and git is not on PATH"}}
	}
	return []finding.Finding{{Severity: finding.Pass, Condition: "tool", Path: path, Subject: "git", Detail: "git is on PATH"}}
}

func exclusion(x *examination, p Place) []finding.Finding {
	path, declared := declares(x, p)
	if !declared {
		return nil
	}
	return []finding.Finding{{Severity: finding.Fail, Condition: "register-unsupported", Path: path, Subject: path, Detail: "a shared register is declared, and leasectl does not know registers yet: it excludes nobody on other machines"}}
}
