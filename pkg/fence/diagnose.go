package fence

import (
	"fmt"
	"path/filepath"

	"holdfast/pkg/finding"
	"holdfast/pkg/procid"
	"holdfast/pkg/regfile"
)

// Diagnose says what is the matter with a session directory: who could be admitted, and why not. It writes nothing.
func Diagnose(dir string, opts Options) []finding.Finding {
	fail := func(err error) []finding.Finding {
		f := finding.Finding{Severity: finding.Fail, Condition: finding.CodeOf(err), Path: dir, Subject: dir, Detail: err.Error(), Fingerprint: Fingerprint(err)}
		if e, ok := err.(*regfile.Error); ok {
			f.Path = e.Path
		}
		if r, ok := err.(*Refusal); ok && r.Path != "" {
			f.Path = r.Path
		}
		return []finding.Finding{f}
	}
	f, err := Open(dir, false, opts)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	e, err := f.Explain()
	if err != nil {
		return fail(err)
	}
	found := e.finding(dir)
	if r := f.obstacle(e); r != nil {
		found.Obstacle = f.located(r).Error()
	}
	return []finding.Finding{found}
}

// obstacle is what would refuse the operation that mends what keeps an admission out.
func (f *Fence) obstacle(e *Explanation) *Refusal {
	s := situation{Resource: f.resource, Directory: f.selected, Claim: e.Claim, Verdict: e.Verdict}
	switch e.Row.Answer {
	case CodeLegacyLease, CodeLeaseUnattributed:
		lease := e.Native[0]
		parent, err := regfile.OpenDir(filepath.Dir(lease.Path))
		if err == nil {
			defer parent.Close()
			if hasEntries(parent, filepath.Base(lease.Path)) {
				return &Refusal{Code: CodeLeaseNotEmpty, Native: []NativeLease{lease}}
			}
		}
		_, r := clearDecision(LeaseClear{Mtime: lease.Mtime, MinAge: DefaultMinAge}, s, e.Native, f.opts.Now())
		return r
	case CodeResourceMismatch:
		return mismatchDecision(Break{Generation: e.Claim.Generation}, s)
	}
	return nil
}

// finding is the row of the admission table that applies, as a finding.
func (e *Explanation) finding(dir string) finding.Finding {
	f := finding.Finding{Severity: finding.Pass, Condition: "absent", Path: e.Resource, Subject: dir, Detail: "nobody has fenced it, and an owner would be admitted"}
	if c := e.Claim; c != nil {
		f.Condition, f.Generation = string(c.State), c.Generation
		f.Detail = fmt.Sprintf("%s by %s; the owner's process is %s: %s", c.State, who(c), e.Verdict.Word, e.Verdict.Reason)
	}
	if len(e.Native) > 0 {
		f.Mtime = FormatLeaseTime(e.Native[0].Mtime)
	}
	switch {
	case e.Row.admits() && e.Blocked != nil:
		f.Severity, f.Condition, f.Detail = finding.Fail, finding.CodeOf(e.Blocked), e.Blocked.Error()
	case !e.Admits() && e.Row.Answer == CodeOwnerLive:
		f.Condition = CodeOwnerLive
	case !e.Admits() && e.Row.Answer == CodeResourceMismatch:
		f.Severity, f.Condition, f.Detail = finding.Fail, e.Row.Answer, e.Refusal().Error()
	case !e.Admits():
		f.Severity, f.Condition, f.Detail = finding.Warn, e.Row.Answer, e.Refusal().Error()
	case e.Claim != nil && e.Claim.State == Reserved:
		f.Severity, f.Condition = finding.Warn, "reservation-abandoned"
		f.Detail = "reserved by a parent that is dead, " + who(e.Claim) + "; the next admission or reservation takes over"
	case e.Claim != nil && e.Claim.State != Closed && e.Verdict.Word == procid.Dead:
		f.Severity, f.Condition = finding.Warn, CodeOwnerDead
		f.Detail = fmt.Sprintf("its last owner, %s, died at %s: what it left open is not known; the next admission takes over", who(e.Claim), e.Claim.State)
	}
	return f
}

// DiagnoseGarden says what is the matter with the record and the location of a citizen. It writes nothing, and takes no lock: an
// enrolment that is under way looks like one that was cut off.
func DiagnoseGarden(g Garden) finding.Finding {
	_, err := g.bound()
	f := finding.Finding{Severity: finding.Pass, Condition: "enrolled", Path: g.locationPath(), Subject: g.ID, Detail: "record and location agree"}
	if err == nil {
		return f
	}
	f.Severity, f.Condition, f.Detail = finding.Warn, finding.CodeOf(err), err.Error()
	if r, ok := err.(*Refusal); ok {
		f.Path = r.Path
	}
	return f
}
