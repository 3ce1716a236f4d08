package lease

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/pkg/claim"
)

// dieEntering leaves what a participant leaves that dies between creating its claim and writing its evidence.
func (c *chaos) dieEntering() {
	c.Helper()
	f, err := os.OpenFile(c.at(".mutex"), os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		f.Close()
		c.counts["died entering"]++
	}
}

// clear does what an operator would do about a claim that stays: an abandoned one by its token; an empty one, which
// proves nothing by itself, only when no living worker has it.
func (c *chaos) clear() {
	c.Helper()
	in, err := c.operator.InspectClaim()
	if err != nil {
		c.Fatal(err)
	}
	switch {
	case in.State == claim.Abandoned:
		c.cleared(c.operator.ClearClaim(claim.ClearRequest{Token: in.Token}))
	case in.State == claim.Unproven && in.Evidence == nil:
		c.clearUnproven()
	}
}

func (c *chaos) cleared(in claim.Inspection, err error) {
	c.Helper()
	switch code := errCode(err); code {
	case "":
		c.counts["cleared "+string(in.State)]++
	case "held", "absent", "claim-mismatch", "claim-changed":
		// the claim that was inspected has gone, and a living worker has one by now
	default:
		c.Errorf("clear: %v", err)
	}
}

// clearUnproven stops every worker, so that no claim comes or goes, and forces the claim only if none of them has it open.
func (c *chaos) clearUnproven() {
	c.Helper()
	for _, p := range c.workers {
		c.signal(p, unix.SIGSTOP)
	}
	for _, p := range c.workers {
		p.await(c, "T")
	}
	if in, err := c.operator.InspectClaim(); err == nil && in.State == claim.Unproven && in.Evidence == nil && !c.claimIsOpen() {
		c.cleared(c.operator.ClearClaim(claim.ClearRequest{Force: true, Digest: in.Fingerprint}))
	}
	for _, p := range c.workers {
		if p.resumes == 0 {
			c.signal(p, unix.SIGCONT)
		}
	}
}

// await waits until the kernel shows the process in that state, or as gone.
func (p *process) await(c *chaos, state string) {
	c.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Microsecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
		if err != nil {
			return
		}
		now := string(stat[strings.LastIndex(string(stat), ")")+2:][:1])
		if now == state || now == "Z" {
			return
		}
		if time.Now().After(deadline) {
			c.Fatalf("worker %d is in state %s, not %s", p.cmd.Process.Pid, now, state)
		}
	}
}

// claimIsOpen reports whether a worker has the claim file open, as its creator does as long as it lives.
func (c *chaos) claimIsOpen() bool {
	c.Helper()
	claim, err := os.Stat(c.at(".mutex"))
	if err != nil {
		return true // there is none to force
	}
	for _, p := range c.workers {
		fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.cmd.Process.Pid))
		for _, fd := range fds {
			if st, err := os.Stat(fd); err == nil && os.SameFile(st, claim) {
				return true
			}
		}
	}
	return false
}
