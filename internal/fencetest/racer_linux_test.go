package fencetest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"holdfast/internal/clikit"
	"holdfast/pkg/fence"
	"holdfast/pkg/procid"
)

// race is a process that seeks admission to a directory, round after round. Arguments: the directory, and one for tickets.
// It reads what to do, a line each, and answers with a line: "won GENERATION", "done", or the refusal's code and how long
// it took.
func race() error {
	self, err := procid.Self()
	if err != nil {
		return err
	}
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		ticket := filepath.Join(os.Args[2], fmt.Sprint(self.PID, ".ticket"))
		began := time.Now()
		won, err := step(in.Text(), self, ticket)
		switch {
		case err != nil:
			fmt.Println(clikit.CodeOf(err), time.Since(began).Milliseconds())
		case won != "":
			fmt.Println("won", won)
		default:
			fmt.Println("done", 0)
		}
	}
	return in.Err()
}

func step(what string, self procid.Identity, ticket string) (won string, err error) {
	opts := fence.Options{Tool: "racer"}
	if what == "admit" {
		f, err := fence.Open(os.Args[1], false, opts)
		if err != nil {
			return "", err
		}
		defer f.Close()
		a, err := f.Admit(context.Background(), fence.Request{Owner: self, Ticket: ticket})
		if err != nil {
			return "", err
		}
		return a.Claim.Generation, nil
	}
	m := fence.Mark{To: fence.State(what), Attempt: what == string(fence.StorageOpen)}
	if m.To == fence.Leased {
		m.Lease = fence.NeverHeld
	}
	_, err = fence.MarkTicket(context.Background(), ticket, m, opts)
	if err == nil && m.To == fence.Closed {
		err = os.Remove(ticket)
	}
	return "", err
}
