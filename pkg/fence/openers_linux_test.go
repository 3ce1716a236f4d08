package fence

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOpenersAreFoundOutsideTransactions: what a transaction sees of a locked hold names no process, for it costs a look at every
// open file of the system; what is said afterwards does.
func TestOpenersAreFoundOutsideTransactions(t *testing.T) {
	dir := t.TempDir()
	locked, err := os.Create(filepath.Join(dir, HoldName))
	if err != nil {
		t.Fatal(err)
	}
	defer locked.Close()
	if err := unix.Flock(int(locked.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	f, err := Open(dir, false, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := f.hold()
	if err != nil || h.State != HoldBusy || h.Openers != nil {
		t.Errorf("inside: %+v, %v", h, err)
	}
	st, err := f.Show()
	if err != nil || !slices.Equal(st.Hold.Openers, []int{os.Getpid()}) {
		t.Errorf("shown: %+v, %v", st.Hold, err)
	}
	r := &Refusal{Code: CodeOwnerUncertain, Hold: &h, How: earlierLives}
	if err := found(r); !strings.Contains(err.Error(), "open in pid") {
		t.Errorf("a refusal says %v", err)
	}
}
