package holdfast_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/rogpeppe/go-internal/testscript"

	"holdfast/internal/clikit"
	"holdfast/internal/cmd/fencectl"
	"holdfast/internal/cmd/fsdoctor"
	"holdfast/internal/cmd/leasectl"
	"holdfast/internal/cmd/regctl"
	"holdfast/internal/supervise"
	"holdfast/internal/testkit"
	"holdfast/internal/testkit/crash"
)

// programs are the tools that exist, as the scripts call them.
var programs = map[string]*clikit.Program{
	"leasectl": leasectl.Program(),
	"fencectl": fencectl.Program(),
	"regctl":   regctl.Program(),
	"fsdoctor": fsdoctor.Program(),
}

func TestMain(m *testing.M) {
	supervise.Jump()
	commands := map[string]func(){}
	for name, p := range programs {
		commands[name] = func() {
			env := clikit.Env{Args: os.Args, Observed: mustConform(p)}
			if os.Getenv(crash.MainThreadEnv) != "" {
				env.Observed = nil // it takes half of the time, and crash tests start thousands of programs
			}
			os.Exit(p.Main(env))
		}
	}
	testscript.Main(m, commands)
}

// folderBudget bounds the scripts of one folder together, several times what they take, so that a folder which has grown
// slow is noticed before the whole run has.
const folderBudget = 4 * time.Minute

// TestScripts runs every scenario: testdata/scripts/PROGRAM/NAME.txtar, whose name is what it claims.
func TestScripts(t *testing.T) {
	folders, err := filepath.Glob("testdata/scripts/*")
	if err != nil || len(folders) == 0 {
		t.Fatal("no scripts:", err)
	}
	for _, dir := range folders {
		started := time.Now()
		t.Run(filepath.Base(dir), func(t *testing.T) {
			testscript.Run(t, testscript.Params{
				Dir:                 dir,
				RequireExplicitExec: true,
				RequireUniqueNames:  true,
				Cmds:                testkit.ScriptCommands(),
				Condition:           testkit.ScriptCondition,
				Setup: func(e *testscript.Env) error {
					// The race runtime would sleep for a second at the exit of every program.
					e.Setenv("GORACE", "atexit_sleep_ms=0")
					e.Defer(func() {
						if err := examine(e.WorkDir); err != nil {
							e.T().Fatal("what the script left: ", err)
						}
						if err := cure(e.WorkDir); err != nil {
							e.T().Fatal("the remedies for what the script left: ", err)
						}
					})
					return nil
				},
			})
		})
		if took := time.Since(started); took > folderBudget {
			t.Errorf("the scripts of %s took %s, more than %s", dir, took.Round(time.Second), folderBudget)
		}
	}
}

// mustConform returns a check that every printed object has a listed code and fits its verb's published schema, with no
// field that the schema does not name. A violation panics, which the script sees as status 70.
func mustConform(p *clikit.Program) func([]byte) {
	return func(line []byte) {
		var object map[string]any
		if err := json.Unmarshal(line, &object); err != nil {
			panic(err)
		}
		code, op := object["code"].(string), object["op"].(string)
		if !clikit.IsCode(code) {
			panic(fmt.Sprintf("code %q is not listed in clikit.Codes", code))
		}
		found := false
		err := p.EachSchema(func(verb string, schema []byte) error {
			if verb != op {
				return nil
			}
			found = true
			return validate(closed(schema), object)
		})
		if err != nil {
			panic(fmt.Sprintf("%s: %v", line, err))
		}
		if !found && code != "usage" {
			panic(fmt.Sprintf("op %q has no schema", op))
		}
	}
}

func validate(schema []byte, object map[string]any) error {
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		return err
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return err
	}
	return resolved.Validate(object)
}

// closed forbids members that an object's schema does not name.
func closed(schema []byte) []byte {
	return []byte(strings.ReplaceAll(string(schema), `"properties":{`, `"additionalProperties":false,"properties":{`))
}
