package claim

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/pkg/procid"
	"holdfast/pkg/regfile"
)

// A claim that is entered and left all the time is held or absent whenever somebody looks, never left behind.
func TestInspectingABusyClaimFindsNobodyGone(t *testing.T) {
	path := t.TempDir()
	d, err := regfile.OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	self, err := procid.Self()
	if err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	done := make(chan error)
	go func() {
		for !stop.Load() {
			h, err := Enter(context.Background(), d, "x.mutex", Who{Tool: "t", Op: "o", Token: "0", Self: self}, 5*time.Second)
			if err == nil {
				err = h.Leave()
			}
			if err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	unproven := 0
	for range 3000 {
		in, err := Inspect(d, "x.mutex")
		if err != nil {
			t.Fatal(err)
		}
		if in.Evidence != nil && in.State != HeldNow {
			unproven++
			t.Logf("%s: %s", in.State, in.Reason)
		}
	}
	stop.Store(true)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if unproven > 0 {
		t.Errorf("%d of 3000 looks called a claim of a live, busy process %s", unproven, Unproven)
	}
	if _, err := os.Lstat(filepath.Join(path, "x.mutex")); !os.IsNotExist(err) {
		t.Error("the claim stayed")
	}
}
