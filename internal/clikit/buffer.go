package clikit

import (
	"sync"
	"time"
)

// The most that a listing keeps back, and for how long.
const (
	keepBytes = 32 << 10
	keepFor   = 10 * time.Millisecond
)

// buffer collects what a listing prints, so that many objects are one write; what nothing follows is written a moment later.
type buffer struct {
	mu     sync.Mutex
	kept   []byte
	timed  bool
	failed error // of a write; the next call returns it
}

func (b *buffer) write(text string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept = append(b.kept, text...)
	switch {
	case len(b.kept) >= keepBytes:
		b.out()
	case !b.timed:
		b.timed = true
		time.AfterFunc(keepFor, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.timed = false
			b.out()
		})
	}
	return b.failed
}

func (b *buffer) flush() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.out()
	return b.failed
}

func (b *buffer) out() {
	if b.failed == nil && len(b.kept) > 0 {
		b.failed = write(string(b.kept))
	}
	b.kept = b.kept[:0]
}
