//go:build !linux

package dirwatch

import "time"

// Watcher has no events here.
type Watcher struct{}

// New returns a watcher that only lets time pass.
func New(int, ...string) *Watcher { return &Watcher{} }

func (w *Watcher) events() bool { return false }

// Wait returns after d.
func (w *Watcher) Wait(d time.Duration) bool {
	time.Sleep(d)
	return false
}

// Close ends the watch.
func (w *Watcher) Close() {}

func nap(d time.Duration) { time.Sleep(d) }
