package registry

import (
	"fmt"
	"slices"

	"holdfast/pkg/claim"
	"holdfast/pkg/finding"
	"holdfast/pkg/procid"
	"holdfast/pkg/regfile"
)

// Diagnose says what is the matter with a state home and each root in its registry. It writes nothing.
func Diagnose(path string, opts Options) []finding.Finding {
	fail := func(err error) []finding.Finding {
		f := finding.Finding{Severity: finding.Fail, Condition: finding.CodeOf(err), Path: path, Subject: path, Home: path, Detail: err.Error()}
		if r, ok := err.(*Refusal); ok && r.Path != "" {
			f.Path = r.Path
		}
		if e, ok := err.(*regfile.Error); ok {
			f.Path = e.Path
		}
		return []finding.Finding{f}
	}
	h, err := Open(path, opts)
	if err != nil {
		f := fail(err)
		f[0].Obstacle = err.Error()
		return f
	}
	defer h.Close()
	reg, err := h.Registry()
	if err != nil {
		return h.obstacles(fail(err))
	}
	found := []finding.Finding{{Severity: finding.Pass, Condition: "registry", Path: h.path, Subject: h.path, Home: h.path, Detail: fmt.Sprintf("readable, with %d rows", len(reg.Rows))}}
	if reg.Fenced {
		found = append(found, finding.Finding{Severity: finding.Fail, Condition: CodeUnavailable, Path: h.registry.Join(lockFile), Subject: h.path, Home: h.path,
			Detail: "a retained lock: an operation stopped in the middle, and nothing changes until it is repaired"})
	}
	if err := h.strangers(); err != nil {
		f := fail(err)
		f[0].Obstacle = err.Error()
		found = append(found, f...)
	}
	_ = h.List(func(in Inspection, row Reservation) error {
		found = append(found, in.finding(row))
		return nil
	})
	return h.obstacles(found)
}

// obstacles says of what a repair would not mend why not. The plan is made without the registry's lock: it is a look, and nothing is
// done by it.
func (h *Home) obstacles(found []finding.Finding) []finding.Finding {
	unclear := func(f finding.Finding) bool {
		return f.Obstacle == "" && (f.Condition == CodeUncertain || f.Condition == CodeUnavailable)
	}
	if h.registry == nil || !slices.ContainsFunc(found, unclear) {
		return found
	}
	var retained *claim.Inspection
	if in, err := claim.Inspect(h.registry, lockFile); err == nil && in.State != claim.Absent && in.State != claim.HeldNow {
		retained = &in
	}
	plan, err := (&locked{Home: h}).plan(retained)
	for i, f := range found {
		if !unclear(f) {
			continue
		}
		if err != nil {
			found[i].Obstacle = err.Error()
			continue
		}
		for _, step := range plan.Steps {
			if step.Action == Leaves && (step.Root == f.Subject || step.Path == f.Path) {
				found[i].Obstacle = step.Why
			}
		}
	}
	return found
}

// finding is a root as a finding.
func (in Inspection) finding(row Reservation) finding.Finding {
	f := finding.Finding{Severity: finding.Pass, Condition: string(in.State), Path: row.Root, Subject: row.Root, Home: row.StateHome,
		Detail: fmt.Sprintf("%s at %s; its owner is %s: %s", in.State, row.Endpoint, in.Verdict.Word, in.Verdict.Reason)}
	switch {
	case in.Err != nil:
		f.Severity, f.Condition, f.Detail = finding.Fail, finding.CodeOf(in.Err), in.Err.Error()
	case in.Directory != RootThere:
		f.Severity, f.Condition, f.OwnerDead = finding.Warn, in.Directory, in.Verdict.Word == procid.Dead
		is := "is not the one any more that was registered"
		if in.Directory == RootMissing {
			is = "is gone"
		}
		f.Detail = "its directory " + is + "; " + f.Detail
	case in.Verdict.Word == procid.Dead:
		f.Severity, f.Condition, f.OwnerDead = finding.Warn, "owner-dead", true
		f.Detail = "its service is gone without a release: " + in.Verdict.Reason
	case in.Verdict.Word != procid.Live:
		f.Severity, f.Condition = finding.Warn, "owner-"+string(in.Verdict.Word)
	}
	return f
}

// strangers refuses, as a mutation would, what lies where stages and receipts belong.
func (h *Home) strangers() error {
	for _, name := range []string{stageDir, receiptsDir} {
		d, err := h.sub(name)
		if err != nil || d == nil {
			if err != nil {
				return err
			}
			continue
		}
		entries, err := d.Entries()
		d.Close()
		if err != nil {
			return err
		}
		for _, e := range entries {
			if name == stageDir && !e.Type().IsRegular() {
				return uncertain(d.Join(e.Name()), "does not belong among the stages")
			}
		}
	}
	return nil
}
