package testkit

import (
	"flag"
	"testing"
)

// Wide is a testing.M for a package whose parallel tests mostly wait: it runs more of them at a time than there are
// processors.
type Wide struct{ *testing.M }

// wideParallel is how many.
const wideParallel = "12"

// Run runs the tests.
func (w Wide) Run() int {
	flag.Parse()
	if err := flag.Set("test.parallel", wideParallel); err != nil {
		panic(err)
	}
	return w.M.Run()
}
