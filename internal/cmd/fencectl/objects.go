package fencectl

import (
	"fmt"

	"holdfast/internal/claimview"
	"holdfast/internal/clikit"
	"holdfast/pkg/fence"
	"holdfast/pkg/procid"
	"holdfast/pkg/regfile"
)

// claimed is a success that wrote an owner claim, or found it as it was.
type claimed struct {
	clikit.Head
	Resource string       `json:"resource"`
	Claim    *fence.Claim `json:"claim"`
	Ticket   string       `json:"ticket,omitzero"`
	clikit.Warned
}

func newClaimed(code, resource string, c *fence.Claim, ticket string, warnings []string) *claimed {
	return &claimed{Head: clikit.Done(code), Resource: resource, Claim: c, Ticket: ticket, Warned: clikit.Warned{Warnings: warnings}}
}

// Text says it in a line or two.
func (o *claimed) Text() string {
	text := fmt.Sprintf("%s: %s, %s", regfile.Printable(o.Resource), o.Code, claimText(o.Claim))
	if r := o.Claim.ReclaimedFrom; r != nil && o.Code == "admitted" {
		text += fmt.Sprintf("\ntaken over from %s, which is dead and was at %s", ownerText(r.Owner), r.State)
	}
	return text
}

// claimText is a claim in a clause.
func claimText(c *fence.Claim) string {
	text := fmt.Sprintf("%s by %s", c.State, ownerText(c.Owner))
	if c.End != nil {
		text += fmt.Sprintf(", storage %s, native lease %s", c.End.Storage, c.Lease)
	}
	if c.End != nil && c.End.Cause != nil && *c.End.Cause != "" {
		text += " (" + regfile.Printable(string(*c.End.Cause)) + ")"
	}
	return text
}

func ownerText(o procid.Identity) string {
	return fmt.Sprintf("pid %d on %s", o.PID, regfile.Printable(o.Hostname))
}

// leaseView is a native lease.
type leaseView struct {
	clikit.Location
	Kind  string `json:"kind"`
	Mtime string `json:"mtime"`
}

func viewLeases(found []fence.NativeLease) []leaseView {
	var views []leaseView
	for _, l := range found {
		views = append(views, leaseView{Location: clikit.At(l.Path), Kind: string(l.Kind), Mtime: fence.FormatLeaseTime(l.Mtime)})
	}
	return views
}

// holdView is the hold file of a run.
type holdView struct {
	State      string           `json:"state"`
	Owner      *procid.Identity `json:"owner,omitzero"`
	Generation string           `json:"generation,omitzero"`
	Openers    []int            `json:"openers,omitzero"` // pids that have it open, as far as they can be seen
	Reason     string           `json:"reason,omitzero"`  // why it cannot be told
}

func viewHold(h fence.Hold, err error) *holdView {
	switch {
	case err != nil:
		return &holdView{State: "unreadable", Reason: err.Error()}
	case h.State == fence.HoldAbsent || h.State == "":
		return nil
	}
	v := &holdView{State: string(h.State), Generation: h.Generation, Openers: h.Openers}
	if h.Owner != (procid.Identity{}) {
		v.Owner = &h.Owner
	}
	return v
}

// status is what show and explain find in a session directory.
type status struct {
	Resource      string          `json:"resource"`
	Claim         *fence.Claim    `json:"claim,omitzero"`
	Verdict       string          `json:"verdict,omitzero"`
	VerdictReason string          `json:"verdictReason,omitzero"`
	NativeLease   bool            `json:"nativeLease"`
	NativeLeases  []leaseView     `json:"nativeLeases,omitzero"`
	Tx            *claimview.View `json:"tx,omitzero"`
	Hold          *holdView       `json:"hold,omitzero"`
	Temps         []string        `json:"temps,omitzero"` // what killed writes left behind
}

func viewStatus(s *fence.Status) status {
	return status{
		Resource: s.Resource, Claim: s.Claim, Verdict: string(s.Verdict.Word), VerdictReason: s.Verdict.Reason,
		NativeLease: len(s.Native) > 0, NativeLeases: viewLeases(s.Native), Tx: claimview.Of(&s.Tx),
		Hold: viewHold(s.Hold, s.HoldErr), Temps: s.Temps,
	}
}

// Text is the status for people, a fact a line.
func (s status) lines() string {
	text := ""
	if c := s.Claim; c != nil {
		text += fmt.Sprintf("\n  claim    %s", claimText(c))
		text += fmt.Sprintf("\n  owner    %s: %s", s.Verdict, s.VerdictReason)
		text += fmt.Sprintf("\n  written  %s, generation %s", c.WrittenAt, c.Generation)
		if c.Selected.Directory != c.Resource {
			text += "\n  selected " + regfile.Printable(c.Selected.Directory)
		}
		if r := c.ReclaimedFrom; r != nil {
			text += fmt.Sprintf("\n  before   %s by %s", r.State, ownerText(r.Owner))
		}
	}
	for _, l := range s.NativeLeases {
		text += fmt.Sprintf("\n  lease    %s, a %s touched at %s", regfile.Printable(l.Path), l.Kind, l.Mtime)
	}
	if s.Tx != nil {
		text += fmt.Sprintf("\n  tx       %s: %s", s.Tx.State, s.Tx.Reason)
	}
	if s.Hold != nil {
		text += "\n  hold     " + s.Hold.State + s.Hold.detail()
	}
	for _, name := range s.Temps {
		text += "\n  temp     " + regfile.Printable(name) + ", of a write that was killed or is under way"
	}
	return text
}

func (h *holdView) detail() string {
	switch {
	case h.Reason != "":
		return ": " + h.Reason
	case len(h.Openers) > 0:
		return fmt.Sprintf(", open in pid %v", h.Openers)
	}
	return ""
}
