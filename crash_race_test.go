//go:build race

package holdfast_test

func init() { raceDetector = true }
