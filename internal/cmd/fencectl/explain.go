package fencectl

import (
	"fmt"
	"strings"

	"holdfast/internal/clikit"
	"holdfast/pkg/fence"
	"holdfast/pkg/regfile"
)

func explainVerb(s *session) *clikit.Verb {
	var t target
	return &clikit.Verb{
		Name:  "explain",
		Usage: "say which rule an admission would meet now, why, and what would have to change",
		Description: `Reads only. The code is admitted when an admission would succeed now, else the refusal it would get,
with status 0 all the same: explaining is what was asked for. The rows are the whole admission table, in the order in
which they are tried.

Example:

   fencectl explain --dir sessions/s1 --format text`,
		Flags:   t.flags(),
		Objects: []clikit.Object{&explained{}},
		Run:     func(c *clikit.Call) error { return s.explain(c, t) },
	}
}

// explained is the row of the admission table that applies, and what follows from it.
type explained struct {
	clikit.Head
	status
	Row    fence.Row   `json:"row"`
	Why    string      `json:"why"`
	Change string      `json:"change"` // what would have to change for another answer
	Remedy string      `json:"remedy,omitzero"`
	Rows   []fence.Row `json:"rows"`
}

func (s *session) explain(c *clikit.Call, t target) error {
	f, err := s.open(t, false)
	if err != nil {
		return err
	}
	defer f.Close()
	e, err := f.Explain()
	if err != nil {
		return err
	}
	return c.Emit(s.explained(e))
}

func (s *session) explained(e *fence.Explanation) *explained {
	o := &explained{status: viewStatus(&e.Status), Row: e.Row, Rows: fence.Rows(), Head: clikit.Done("admitted")}
	if refusal := e.Refusal(); refusal != nil {
		o.Code = clikit.CodeOf(refusal)
		o.Remedy = s.refusal(refusal).Remedy
	}
	o.Why, o.Change = why(e), change(e)
	if e.Admits() && e.NeedsProfile {
		o.Remedy = fmt.Sprintf("fencectl admit %s --profile %s --owner-pid PID --ticket FILE", s.flag(), profileOf(e.Claim))
	}
	return o
}

// profileOf is the profile that a claim is of, as a word of a command.
func profileOf(c *fence.Claim) string {
	if c == nil || c.Selected.Profile == "" {
		return "PROFILE"
	}
	return clikit.Quote(c.Selected.Profile)
}

// why says what the row was picked on.
func why(e *fence.Explanation) string {
	c := e.Claim
	lease := "and there is no native lease"
	if len(e.Native) > 0 {
		lease = "and there is a native lease, " + regfile.Printable(e.Native[0].Path)
	}
	switch {
	case c == nil:
		return "nobody has fenced this directory, " + lease
	case c.Resource != e.Resource:
		return "the claim names " + regfile.Printable(c.Resource) + ": the directory was copied or moved"
	case c.State == fence.Closed:
		return fmt.Sprintf("its last owner, %s, closed it at %s, %s", ownerText(c.Owner), c.End.At, lease)
	}
	text := fmt.Sprintf("it is %s by %s, whose process is %s: %s", c.State, ownerText(c.Owner), e.Verdict.Word, e.Verdict.Reason)
	switch e.Row.Name {
	case "owner-dead-attributed", "owner-dead-lease-present", "owner-dead":
		text += fmt.Sprintf("; its native lease was %s, %s", c.Lease, lease)
	}
	return text
}

// change says what would have to change for another answer.
func change(e *fence.Explanation) string {
	if !e.Admits() && e.Row.Answer == string(fence.Fenced) {
		return "the rule would admit, and nothing can be written: " + e.Blocked.Error()
	}
	if e.Claim != nil && e.Claim.State == fence.Reserved && e.Row.Answer == fence.CodeOwnerLive {
		return "its child adopts it with --adopt-garden, or its parent withdraws it, or ends"
	}
	switch e.Row.Answer {
	case fence.CodeResourceMismatch:
		return "the claim has to go: move it aside, when this directory is the one to go on with"
	case fence.CodeLegacyLease, fence.CodeLeaseUnattributed:
		return "the native lease has to go: its program ends and removes it, or you do, when no program has it any more"
	case fence.CodeOwnerLive:
		return "the owner has to close, or to end"
	case fence.CodeOwnerOtherHost:
		return "only that host can say whether the owner lives: look there, or vouch for its end yourself"
	case fence.CodeOwnerUncertain:
		if e.Hold.State == fence.HoldBusy {
			return "what still lives of the owner's run has to end; then this directory is free by itself"
		}
		return "the owner's end has to be proven: look from where it can be seen, or vouch for it yourself"
	}
	if e.Hold.State == fence.HoldBusy {
		return "nothing, for admit; fencectl run is refused until what has the hold open has ended"
	}
	if e.NeedsProfile {
		return "nothing, for an owner with the profile; without --profile it is refused, to keep the others' claims readable"
	}
	return "nothing"
}

// Text is made for 2 a.m.: the answer, the reason, the way on, the facts, and the table with a mark at the row.
func (o *explained) Text() string {
	var b strings.Builder
	answer := "an admission would succeed"
	if o.Code != "admitted" {
		answer = "an admission would be refused: " + o.Code
	}
	fmt.Fprintf(&b, "%s: %s\n\n  because   %s\n  to change %s\n", regfile.Printable(o.Resource), answer, o.Why, o.Change)
	if o.Remedy != "" {
		fmt.Fprintf(&b, "  remedy    %s\n", o.Remedy)
	}
	if lines := o.lines(); lines != "" {
		fmt.Fprintf(&b, "\nwhat is there%s\n", lines)
	}
	b.WriteString("\nthe rule, of those that are tried in this order\n")
	for _, row := range o.Rows {
		mark := " "
		if row.Name == o.Row.Name {
			mark = ">"
		}
		fmt.Fprintf(&b, "%s %-24s  %-43s  lease %-9s  -> %s\n", mark, row.Name, row.Claim, row.NativeLease, row.Answer)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
