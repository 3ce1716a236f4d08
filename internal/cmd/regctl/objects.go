package regctl

import (
	"fmt"

	"holdfast/internal/clikit"
	"holdfast/pkg/regfile"
	"holdfast/pkg/registry"
)

// rowView is a row without what only its owner may know.
type rowView struct {
	Root           string `json:"root"`
	StateHome      string `json:"stateHome"`
	ConfigIdentity string `json:"configIdentity"`
	Endpoint       string `json:"endpoint"`
	Epoch          string `json:"epoch"`
	PID            int    `json:"pid"`
	StartKey       string `json:"startKey"`
	Host           string `json:"host"`
}

func viewRow(r *registry.Reservation) *rowView {
	if r == nil {
		return nil
	}
	return &rowView{r.Root, r.StateHome, r.ConfigIdentity, r.Endpoint, r.Epoch, r.PID, r.StartKey, r.Host}
}

// registrationView is a registration without what only its owner may know.
type registrationView struct {
	rowView
	RootStamp string `json:"rootStamp"`
	Phase     string `json:"phase"`
}

func viewRegistration(r *registry.Registration) *registrationView {
	if r == nil {
		return nil
	}
	return &registrationView{*viewRow(&r.Reservation), r.RootStamp, string(r.Phase)}
}

// registered is a success that is about a registration.
type registered struct {
	clikit.Head
	Registration *registrationView `json:"registration"`
	Receipt      string            `json:"receipt"`
}

func newRegistered(code string, r *registry.Registration, receipt string) *registered {
	return &registered{Head: clikit.Done(code), Registration: viewRegistration(r), Receipt: receipt}
}

// Text says it in a line.
func (o *registered) Text() string {
	r := o.Registration
	return fmt.Sprintf("%s: %s, %s at %s, by pid %d on %s, epoch %s", regfile.Printable(r.Root), o.Code, r.Phase, r.Endpoint,
		r.PID, regfile.Printable(r.Host), r.Epoch)
}

// inspected is a root as it was found.
type inspected struct {
	clikit.Head
	Root          string            `json:"root"`
	Row           *rowView          `json:"row,omitzero"` // in list
	Phase         string            `json:"phase,omitzero"`
	Registration  *registrationView `json:"registration,omitzero"`
	Verdict       string            `json:"verdict,omitzero"`
	VerdictReason string            `json:"verdictReason,omitzero"`
	Directory     string            `json:"directory,omitzero"` // root-missing or root-replaced
	Probe         *probeView        `json:"probe,omitzero"`     // in list --probe
	Fenced        bool              `json:"fenced,omitzero"`
	Reason        string            `json:"reason,omitzero"` // of an uncertain one
	clikit.SyntaxFault
	clikit.Location
	Remedy string `json:"remedy,omitzero"`
}

func (s *session) inspected(in registry.Inspection) *inspected {
	o := &inspected{
		Head: clikit.Done(string(in.State)), Root: in.Root, Registration: viewRegistration(in.Registration),
		Verdict: string(in.Verdict.Word), VerdictReason: in.Verdict.Reason, Directory: in.Directory, Fenced: in.Fenced,
	}
	if in.Registration != nil {
		o.Phase = string(in.Registration.Phase)
	}
	if in.Err != nil {
		r := s.refusal("inspect", in.Err)
		o.Head = clikit.Refused(string(in.State))
		o.Reason, o.Location, o.Remedy = r.Reason, r.Location, r.Remedy
		o.SyntaxFault = r.SyntaxFault
	}
	return o
}

// Text says it, a fact a line.
func (o *inspected) Text() string {
	text := regfile.Printable(o.Root) + ": " + o.Code
	if r := o.Registration; r != nil {
		text += fmt.Sprintf("\n  endpoint %s, epoch %s\n  owner    pid %d on %s, %s: %s", r.Endpoint, r.Epoch, r.PID, regfile.Printable(r.Host), o.Verdict, o.VerdictReason)
	}
	if o.Directory != "" {
		text += "\n  root     " + o.Directory
	}
	if o.Probe != nil {
		text += "\n  probe    " + o.Probe.Answer
	}
	if o.Reason != "" {
		text += "\n  because  " + o.Reason
	}
	if o.Fenced {
		text += "\n  fenced   a retained lock keeps everything from changing"
	}
	if o.Remedy != "" {
		text += "\n  remedy   " + o.Remedy
	}
	return text
}
