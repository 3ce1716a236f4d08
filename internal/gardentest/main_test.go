//go:build linux

// Package gardentest races real fencectl processes over one garden: parents that reserve, withdraw, and children that adopt. Each
// time exactly one gets what both want, and the claim is that one's.
package gardentest

import (
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"holdfast/internal/clikit"
	"holdfast/internal/cmd/fencectl"
)

// TestMain makes this binary serve as the contenders too.
func TestMain(m *testing.M) {
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	testscript.Main(m, map[string]func(){
		"fencectl":  func() { os.Exit(fencectl.Main(clikit.Env{Args: os.Args})) },
		"contender": contend,
	})
}

// The descriptors of a contender: it says on one that it is ready, and begins when the other one ends.
const (
	readyFD = 3
	beginFD = 4
)

// contend is fencectl behind a barrier. Arguments: a delay after that, fencectl's own.
func contend() {
	delay, err := time.ParseDuration(os.Args[1])
	if err == nil {
		err = os.NewFile(readyFD, "ready").Close()
	}
	if err == nil {
		_, err = io.Copy(io.Discard, os.NewFile(beginFD, "begin"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(70)
	}
	time.Sleep(delay)
	os.Exit(fencectl.Main(clikit.Env{Args: append([]string{"fencectl"}, os.Args[2:]...)}))
}
