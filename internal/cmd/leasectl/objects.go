package leasectl

import (
	"fmt"
	"strconv"
	"time"

	"holdfast/internal/clikit"
	"holdfast/pkg/lease"
	"holdfast/pkg/regfile"
	"holdfast/pkg/strictjson"
)

// leased is a success that is about a lease.
type leased struct {
	clikit.Head
	clikit.Location
	Lease     strictjson.Object `json:"lease"`
	TakenOver strictjson.Object `json:"takenOver,omitzero"` // the expired lease that was replaced
	clikit.Warned

	lease *lease.Lease
}

func newLeased(code string, s *lease.Store, out *lease.Outcome) *leased {
	o := &leased{
		Head: clikit.Done(code), Location: clikit.At(s.Path()), Lease: out.Lease.Members(),
		Warned: clikit.Warned{Warnings: out.Warnings}, lease: out.Lease,
	}
	if out.Replaced != nil {
		o.TakenOver = out.Replaced.Members()
	}
	return o
}

// Text says it in a line or two.
func (o *leased) Text() string {
	text := fmt.Sprintf("%s: %s, holder %s%s", regfile.Printable(o.Path), o.Code, o.lease.Who(), fenceText(o.lease))
	if o.Code != "released" {
		text += ", until " + lease.FormatTime(o.lease.ExpiresAt)
	}
	if len(o.TakenOver.Names()) > 0 {
		text += "\ntaken over from an expired lease"
	}
	return text
}

// Exports are the variables that run gives its child.
func (o *leased) Exports() []clikit.Export { return exports(o.Path, o.lease) }

// exported are the variables that tell a program under a lease about it.
var exported = []string{"LEASE_LOCK", "LEASE_HOLDER", "LEASE_FENCE"}

func exports(path string, l *lease.Lease) []clikit.Export {
	if l == nil {
		return nil
	}
	return []clikit.Export{
		{Name: "LEASE_LOCK", Value: absolute(path)},
		{Name: "LEASE_HOLDER", Value: l.HolderID},
		{Name: "LEASE_FENCE", Value: strconv.FormatUint(l.Fence, 10)},
	}
}

func fenceText(l *lease.Lease) string {
	if l.Fence == 0 {
		return ""
	}
	return fmt.Sprintf(", fence %d", l.Fence)
}

// stageView is a staging file.
type stageView struct {
	Kind  string `json:"kind"`
	Size  int64  `json:"size"`
	Mtime string `json:"mtime"`
}

func viewStage(st *regfile.Stamp) *stageView {
	if st == nil {
		return nil
	}
	return &stageView{Kind: string(st.Kind), Size: st.Size, Mtime: lease.FormatTime(st.Mtime)}
}

// left is a span for people. Nothing is over, or has not begun, before it is.
func left(d time.Duration) string {
	if 0 < d && d < time.Second {
		return "<1s"
	}
	return d.Round(time.Second).String()
}
