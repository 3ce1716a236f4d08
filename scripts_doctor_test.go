package holdfast_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"holdfast/pkg/fence"
)

// examined is what fsdoctor said of a script's directory.
type examined struct {
	Code, Check, Status, Condition, Path string
	Fail                                 int // of the summary
}

// examine runs fsdoctor over what a script left. It must end, with the status that its summary says, and must have passed over
// nothing that a plain walk finds: each lease with the word that leasectl has for it, each owner claim, each state home, each
// protocol file that is no regular file.
func examine(work string) error {
	cmd := exec.Command("fsdoctor", "check", "--format", "json", work)
	timer := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	out, err := cmd.Output()
	timer.Stop()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	status := cmd.ProcessState.ExitCode()
	var found []examined
	for line := range strings.Lines(string(out)) {
		var x examined
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			return fmt.Errorf("%q: %w", line, err)
		}
		found = append(found, x)
	}
	if len(found) == 0 || found[len(found)-1].Code != "summary" || status != min(found[len(found)-1].Fail, 1) {
		return fmt.Errorf("status %d: %s", status, out)
	}
	return filepath.WalkDir(work, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // the script took a right away, or something of it is still running
		}
		skip, complaint := passedOver(path, d, found)
		switch {
		case complaint == nil && skip:
			return fs.SkipDir
		case complaint == nil:
			return nil
		}
		if _, err := os.Lstat(path); err != nil {
			return nil // gone meanwhile
		}
		return complaint
	})
}

// passedOver says what is missing of a path among what was found, and whether what is below it is not looked at.
func passedOver(path string, d fs.DirEntry, found []examined) (skip bool, complaint error) {
	says := func(check string, fits func(examined) bool) bool {
		return slices.ContainsFunc(found, func(x examined) bool { return x.Check == check && fits(x) })
	}
	about := func(x examined) bool { return x.Path == path }
	below := func(x examined) bool { return strings.HasPrefix(x.Path+"/", filepath.Dir(path)+"/") }
	dir := filepath.Base(filepath.Dir(path))
	switch name := d.Name(); {
	case d.IsDir() && (name == "node_modules" || name == ".git"):
		return true, nil
	case d.IsDir() && stateHome(path):
		if !says("registry", func(x examined) bool { return strings.HasPrefix(x.Path+"/", path+"/") }) {
			return true, fmt.Errorf("nothing is said of the state home %s", path)
		}
		return true, nil
	case !utf8.ValidString(path): // its bytes stand elsewhere in the object
		return false, nil
	case dir == "state" && strings.HasSuffix(name, ".lock"):
		word := leaseWord(path)
		if !slices.ContainsFunc(found, func(x examined) bool {
			return strings.HasPrefix(x.Path, path) && (x.Condition == word || lasted(x.Condition, word))
		}) {
			return false, fmt.Errorf("leasectl says %q of %s, and fsdoctor does not", word, path)
		}
	case dir == "state" && strings.HasSuffix(name, ".lock.mutex") && d.Type().IsRegular() && !says("claims", about):
		return false, fmt.Errorf("nothing is said of the claim file %s", path)
	case name == fence.ClaimName && !says("fences", below):
		return false, fmt.Errorf("nothing is said of %s", path)
	case (name == fence.ClaimName || name == fence.TxName || name == fence.HoldName) && !d.Type().IsRegular() &&
		!says("entry-types", func(x examined) bool { return about(x) && x.Condition == "not-regular" }):
		return false, fmt.Errorf("it is not said what %s is", path)
	}
	return false, nil
}

// lasted reports whether a lease's time ran out between the two looks at it.
func lasted(before, after string) bool { return before == "held" && after == "expired" }

func stateHome(dir string) bool {
	for _, name := range []string{"registry", "roots"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// leaseWord is what leasectl calls the state of a lease.
func leaseWord(path string) string {
	out, _ := exec.Command("leasectl", "status", "--format", "json", "--lock", path).Output()
	var x struct{ Code string }
	if err := json.Unmarshal(out, &x); err != nil {
		return fmt.Sprintf("%q", out)
	}
	return x.Code
}
