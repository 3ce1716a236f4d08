// Package claimview shows a claim file, as every program's objects carry it, and the commands that lead on from one.
package claimview

import (
	"fmt"

	"holdfast/internal/clikit"
	"holdfast/pkg/claim"
)

// View is a claim file as objects carry it.
type View struct {
	State         string `json:"state"`
	Reason        string `json:"reason"`
	Token         string `json:"token,omitzero"`
	Fingerprint   string `json:"fingerprint,omitzero"`
	AgeMs         int64  `json:"ageMs"`
	Tool          string `json:"tool,omitzero"`
	Op            string `json:"op,omitzero"`
	Root          string `json:"root,omitzero"` // what the operation was about
	PID           int    `json:"pid,omitzero"`
	StartKey      string `json:"startKey,omitzero"`
	Hostname      string `json:"hostname,omitzero"`
	EnteredAt     string `json:"enteredAt,omitzero"`
	KernelLock    bool   `json:"kernelLock,omitzero"`
	Verdict       string `json:"verdict,omitzero"`
	VerdictReason string `json:"verdictReason,omitzero"`
}

// Of is the view of an inspection; nil when there is none, or no claim.
func Of(in *claim.Inspection) *View {
	if in == nil || in.State == claim.Absent {
		return nil
	}
	v := &View{
		State: string(in.State), Reason: in.Reason, Token: in.Token, Fingerprint: in.Fingerprint,
		AgeMs: in.Age.Milliseconds(),
	}
	if e := in.Evidence; e != nil {
		v.Tool, v.Op, v.Root, v.PID, v.StartKey, v.Hostname = e.Tool, e.Op, e.Root, e.PID, e.StartKey, e.Hostname
		v.EnteredAt, v.KernelLock = e.EnteredAt, e.KernelLock
	}
	if in.Creator != nil {
		v.Verdict, v.VerdictReason = string(in.Creator.Word), in.Creator.Reason
	}
	return v
}

// HolderCommand shows who has a held claim; a stopped creator shows as T there.
func HolderCommand(in claim.Inspection) string {
	if e := in.Evidence; e != nil && e.PID > 0 {
		return fmt.Sprintf("ps -o pid,stat,etime,args -p %d", e.PID)
	}
	return "fuser -v " + clikit.Quote(in.Path)
}
