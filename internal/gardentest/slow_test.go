//go:build linux && race

package gardentest

// The race detector makes every start of a program slow.
func init() { rounds = 50 }
