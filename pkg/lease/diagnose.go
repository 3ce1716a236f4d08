package lease

import (
	"fmt"
	"time"

	"holdfast/pkg/finding"
	"holdfast/pkg/regfile"
)

// clockSlack is how far a time may lie in the future before a clock is suspected.
const clockSlack = 5 * time.Second

// Diagnose says what is the matter with a lease file, its stage and its journal. It writes nothing.
func Diagnose(path string, opts Options) []finding.Finding {
	opts.AllowMissing = true
	s, err := Open(path, opts)
	if err != nil {
		return []finding.Finding{{Severity: finding.Fail, Condition: finding.CodeOf(err), Path: path, Subject: path, Detail: err.Error()}}
	}
	defer s.Close()
	st, err := s.Status()
	if err != nil {
		return []finding.Finding{s.unusable(err)}
	}
	found := []finding.Finding{s.state(st)}
	if st.State == StateExpired && st.Lease.Fence >= MaxFence {
		found[0].Obstacle = (&Refusal{Code: CodeFenceExhausted, Path: s.path}).Error()
	}
	if f, suspect := s.clock(st.Lease); suspect {
		found = append(found, f)
	}
	if st.Stage != nil && st.Claim == nil {
		found = append(found, s.finding(finding.Warn, "stranded-stage", s.dir.Join(s.stageName()), "a change was cut off; the next one removes it"))
	}
	return append(found, s.journalFindings()...)
}

func (s *Store) finding(severity finding.Severity, condition, path, detail string) finding.Finding {
	return finding.Finding{Severity: severity, Condition: condition, Path: path, Subject: s.path, Detail: detail}
}

// unusable is a file that cannot be read or trusted.
func (s *Store) unusable(err error) finding.Finding {
	f := s.finding(finding.Fail, finding.CodeOf(err), s.path, err.Error())
	f.Fingerprint = Fingerprint(err)
	if path := pathOf(err); path != "" {
		f.Path = path
	}
	return f
}

// state is the lease as it stands.
func (s *Store) state(st Status) finding.Finding {
	switch st.State {
	case StateExpired:
		return s.finding(finding.Warn, string(st.State), s.path, fmt.Sprintf("the lease of %s expired %s ago", st.Lease.Who(), span(-st.Remaining)))
	case StateHeld:
		return s.finding(finding.Pass, string(st.State), s.path, fmt.Sprintf("held by %s, %s left", st.Lease.Who(), span(st.Remaining)))
	}
	return s.finding(finding.Pass, string(StateFree), s.path, "nobody holds it")
}

// clock suspects a clock when the lease has a time that no honest one gives.
func (s *Store) clock(l *Lease) (finding.Finding, bool) {
	if l == nil {
		return finding.Finding{}, false
	}
	now := s.opts.Now()
	var acquired time.Time
	detail := ""
	switch {
	case acquired.UnmarshalText([]byte(l.AcquiredAt)) == nil && acquired.After(now.Add(clockSlack)):
		detail = "it was acquired " + span(acquired.Sub(now)) + " in the future"
	case l.ExpiresAt.Sub(now) > l.term()+clockSlack:
		detail = fmt.Sprintf("it expires in %s, later than its duration of %s allows", span(l.ExpiresAt.Sub(now)), span(l.term()))
	default:
		return finding.Finding{}, false
	}
	return s.finding(finding.Warn, "clock-anomaly", s.path, detail+": a clock has been wrong, here or where it was written"), true
}

// journalFindings compare the journal with the lease.
func (s *Store) journalFindings() []finding.Finding {
	h, err := s.History()
	if err != nil {
		return []finding.Finding{s.unusable(err)}
	}
	var found []finding.Finding
	path := s.path + ".journal"
	if h.Unreadable > 0 {
		found = append(found, s.finding(finding.Warn, "journal-damaged", path, fmt.Sprintf("%d of its lines cannot be read", h.Unreadable)))
	}
	if n := len(h.Records); n > 0 && h.Records[n-1].Unconfirmed {
		found = append(found, s.finding(finding.Warn, "journal-unconfirmed", path, "its last line is not what the lease file says: a change was cut off, or another program wrote the lease"))
	}
	return found
}

// pathOf is the file that an error is about.
func pathOf(err error) string {
	switch e := err.(type) {
	case *Refusal:
		return e.Path
	case *regfile.Error:
		return e.Path
	}
	return ""
}
