//go:build race

package fencetest

// times is how often something is done that needs many tries: the race detector makes every start of a program take long, and
// looks at the program, not at the tries.
func times(n int) int { return n / 5 }
