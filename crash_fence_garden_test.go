//go:build linux

package holdfast_test

import "path/filepath"

// The garden that is planted.
const (
	crashGarden      = "20260101T000000-abcdef"
	crashIncarnation = "i1"
	crashCWD         = "/work"
)

func (s *crashSession) meta() string { return filepath.Join(s.root, "meta") }
