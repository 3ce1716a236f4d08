package leasectl

import (
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/internal/clikit"
	"holdfast/internal/supervise"
	"holdfast/pkg/lease"
)

// TestSignalBetweenAcquireAndStart: a signal that comes when the lease is there and the command not yet ends the run before
// the start, where it is one that ends programs.
func TestSignalBetweenAcquireAndStart(t *testing.T) {
	dir := t.TempDir()
	store, err := lease.Open(filepath.Join(dir, "a.lock"), lease.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	out, err := store.Acquire(t.Context(), lease.AcquireRequest{Duration: lease.DefaultDuration})
	if err != nil {
		t.Fatal(err)
	}
	k := &keeping{store: store, events: &eventLog{}, keeper: store.Keep(out, lease.DefaultGrace(lease.DefaultDuration), func(lease.KeeperEvent) {})}
	defer func() { _ = k.keeper.Stop(t.Context()) }()
	signals := supervise.Catch()
	defer signal.Reset()

	sendSelf(t, unix.SIGCONT)
	if err := k.verify(signals); err != nil {
		t.Errorf("SIGCONT: %v", err)
	}
	for _, sig := range []unix.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGUSR2} {
		sendSelf(t, sig)
		_, err := k.start([]string{"touch", filepath.Join(dir, "started")}, "a.lock", signals)
		if clikit.InterruptOf(err) != sig {
			t.Fatalf("%s: the start gives %v", unix.SignalName(sig), err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "started")); err == nil {
		t.Error("the command was started")
	}
}

// sendSelf sends a signal to this very thread, so that it has come when it returns.
func sendSelf(t *testing.T, sig unix.Signal) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Tgkill(os.Getpid(), unix.Gettid(), sig); err != nil {
		t.Fatal(err)
	}
}
