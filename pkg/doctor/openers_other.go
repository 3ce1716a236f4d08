//go:build !linux

package doctor

import "holdfast/pkg/regfile"

// openers needs Linux's /proc.
func openers(regfile.Stamp) ([]int, bool) { return nil, false }

// gitsIn needs it as well.
func gitsIn([]string) ([]int, bool) { return nil, false }
