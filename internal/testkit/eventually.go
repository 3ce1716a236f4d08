package testkit

import (
	"testing"
	"time"
)

// Eventually waits until a condition holds and fails the test when it does not come to hold for a generous while.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
