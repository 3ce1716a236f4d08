// Package testkit is what the tests of several packages share.
package testkit

import (
	"os"
	"os/exec"
)

// T is the part of testing.TB and *testscript.TestScript that Need uses.
type T interface {
	Skip(args ...any)
	Fatal(args ...any)
}

// StrictEnv is the environment variable under which a missing requirement fails instead of skipping.
const StrictEnv = "HOLDFAST_NO_SKIP"

// Need skips a test unless ok, and says what is missing. Where nothing may be skipped it fails.
func Need(t T, ok bool, what string) {
	if h, is := t.(interface{ Helper() }); is {
		h.Helper()
	}
	switch {
	case ok:
	case os.Getenv(StrictEnv) != "":
		t.Fatal("needs " + what + ", and nothing may be skipped here")
	default:
		t.Skip("needs " + what)
	}
}

// NeedTool is Need for a program on PATH.
func NeedTool(t T, name string) {
	_, err := exec.LookPath(name)
	Need(t, err == nil, "the program "+name)
}

// NeedRoot is Need for root.
func NeedRoot(t T) { Need(t, os.Geteuid() == 0, "root") }
