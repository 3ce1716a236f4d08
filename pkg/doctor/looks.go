package doctor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"holdfast/pkg/claim"
	"holdfast/pkg/fence"
	"holdfast/pkg/finding"
	"holdfast/pkg/lease"
	"holdfast/pkg/regfile"
	"holdfast/pkg/registry"
)

// sessionNames are the protocol's files in a session directory.
var sessionNames = []string{fence.ClaimName, fence.TxName, fence.HoldName, fence.BreaksName}

// protocolNames are the names in a place that must be regular files.
func (p Place) protocolNames() (names []string) {
	for _, name := range p.Names {
		switch {
		case p.Where == Leases && isLease(name), p.Where == Session && slices.Contains(sessionNames, name):
			names = append(names, name)
		}
	}
	return names
}

func entryTypes(x *examination, p Place) (found []finding.Finding) {
	home := ""
	if p.Where == StateHome {
		home = p.Dir
	}
	files := 0
	for _, path := range x.protocolPaths(p) {
		if !x.touch(path) {
			continue
		}
		f := finding.Finding{Severity: finding.Fail, Path: path, Subject: path, Home: home}
		st, err := regfile.Lstat(path)
		switch {
		case regfile.IsAbsent(err), p.Where == StateHome && st.Kind == regfile.Directory:
			continue
		case err != nil:
			f.Condition, f.Detail = finding.CodeOf(err), err.Error()
		case st.Kind != regfile.Regular:
			f.Condition, f.Detail = regfile.CodeNotRegular, "it is "+st.Kind.Noun()+", not a regular file"
		default:
			files++
			continue
		}
		found = append(found, f)
	}
	if len(found) == 0 && files > 0 {
		found = append(found, finding.Finding{Severity: finding.Pass, Condition: string(regfile.Regular), Path: p.Dir, Subject: p.Dir, Detail: fmt.Sprintf("%d protocol files, all regular", files)})
	}
	return found
}

// protocolPaths are the paths in a place at which regular files belong, and the directories of a state home with them.
func (x *examination) protocolPaths(p Place) (paths []string) {
	if p.Where == StateHome {
		return x.homePaths(p)
	}
	for _, name := range p.protocolNames() {
		paths = append(paths, filepath.Join(p.Dir, name))
	}
	return paths
}

func leases(x *examination, p Place) (found []finding.Finding) {
	if p.Where != Leases {
		return nil
	}
	for _, name := range leaseNames(p.Names) {
		path := filepath.Join(p.Dir, name)
		if !x.touch(path) {
			continue
		}
		found = append(found, lease.Diagnose(path, lease.Options{})...)
	}
	return found
}

func fences(x *examination, p Place) []finding.Finding {
	if p.Where != Session {
		return nil
	}
	if !x.touch(p.Dir) {
		return nil
	}
	return fence.Diagnose(p.Dir, fence.Options{Judge: x.self.Judge})
}

func registries(x *examination, p Place) []finding.Finding {
	if p.Where != StateHome {
		return nil
	}
	if !x.touch(p.Dir) {
		return nil
	}
	return registry.Diagnose(p.Dir, registry.Options{Judge: x.self.Judge})
}

func gardens(x *examination, p Place) (found []finding.Finding) {
	if p.Where != MetaRoot {
		return nil
	}
	dir := filepath.Join(p.Dir, "meta-sessions")
	if !x.touch(dir) {
		return nil
	}
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
		if !x.touch(filepath.Join(dir, e.Name())) {
			continue
		}
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
		if !x.touch(filepath.Join(p.Dir, name)) {
			continue
		}
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
			f.Condition, f.Detail, f.Token, f.Fingerprint = string(in.State), in.Describe(), in.Token, in.Fingerprint
			if in.State == claim.HeldNow {
				f.Severity = finding.Pass
			}
			return f
		}
	}
	f.Condition, f.Detail = finding.CodeOf(err), err.Error()
	return f
}

// declares reports whether a fleet declares a shared register.
func declares(x *examination, p Place) (path string, declared bool) {
	if p.Where != Fleet {
		return "", false
	}
	for _, name := range []string{"fleet.json", "package.json"} {
		path := filepath.Join(p.Dir, name)
		if !x.touch(path) {
			continue
		}
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
