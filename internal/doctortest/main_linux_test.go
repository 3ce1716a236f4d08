// Package doctortest runs the real fsdoctor where files do harm: on filesystems that do not answer, in a zoo of everything that a
// state directory should not hold, and under strace.
package doctortest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"holdfast/internal/clikit"
	"holdfast/internal/cmd/fsdoctor"
	"holdfast/internal/testkit"
	"holdfast/internal/testkit/hangfs"
)

// TestMain makes this binary serve as the programs that the tests start by name.
func TestMain(m *testing.M) {
	// The race detector makes every process sleep for a second at its end unless it is told not to.
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	testscript.Main(testkit.Wide{M: m}, map[string]func(){
		"fsdoctor": func() { os.Exit(fsdoctor.Main(clikit.Env{Args: os.Args})) },
		hangfs.Program: func() {
			if err := hangfs.Serve(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		},
	})
}

// limit is how long one run may take on a busy machine; every run here should take a few seconds at most.
const limit = 30 * time.Second

// outcome is how a run of fsdoctor ended.
type outcome struct {
	status  int
	objects []object
	stderr  string
}

// object is what the tests look at in an object.
type object struct {
	Code, Kind, Path, Reason, Check, Condition, Status, Detail, Remedy string
}

// doctor runs fsdoctor to its end, which must come in time.
func doctor(t *testing.T, args ...string) outcome {
	t.Helper()
	return finish(t, exec.Command("fsdoctor", args...))
}

func finish(t *testing.T, cmd *exec.Cmd) (o outcome) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(limit, func() { cmd.Process.Kill() })
	defer timer.Stop()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	o.status, o.stderr = testkit.StatusOf(cmd.ProcessState), errs.String()
	if o.status > 128 {
		t.Fatalf("%v did not end: %s%s", cmd.Args, out.String(), errs.String())
	}
	for line := range strings.Lines(out.String()) {
		var x object
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		o.objects = append(o.objects, x)
	}
	return o
}

// has reports whether there is an object with that code about that path.
func (o outcome) has(code, path string) bool {
	for _, x := range o.objects {
		if x.Code == code && x.Path == path {
			return true
		}
	}
	return false
}
