package fence

import (
	"fmt"

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
	found := []finding.Finding{e.finding(dir)}
	for _, name := range e.Temps {
		found = append(found, finding.Finding{Severity: finding.Warn, Condition: "temp", Path: f.dir.Join(name), Subject: dir, Detail: "a write was cut off, or is under way"})
	}
	return found
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
