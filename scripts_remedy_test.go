package holdfast_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// cure types every remedy that fsdoctor prints for a directory, until it prints no new one, and says which one left its finding where
// it was.
func cure(work string) error {
	said := map[string]string{}
	found, err := checked(work)
	for err == nil {
		typed := untried(found, said)
		if len(typed) == 0 {
			return nil
		}
		for _, x := range typed {
			if _, done := said[x.Remedy]; !done {
				said[x.Remedy] = paste(work, x.Remedy)
			}
		}
		if found, err = checked(work); err != nil {
			return err
		}
		for _, x := range typed {
			if slices.ContainsFunc(found, x.same) {
				return fmt.Errorf("%s %s %s is there after %q, which says %s", x.Check, x.Condition, x.Path, x.Remedy, said[x.Remedy])
			}
		}
	}
	return err
}

// same reports whether a later check says the same once more.
func (x examined) same(y examined) bool {
	return y.Check == x.Check && y.Condition == x.Condition && y.Path == x.Path && y.Status != "pass"
}

// untried are the findings whose remedy is a command that was not typed yet; claim files first, for they keep other commands out.
func untried(found []examined, tried map[string]string) (claims []examined) {
	var others []examined
	for _, x := range found {
		_, done := tried[x.Remedy]
		switch {
		case done, x.Remedy == "", strings.HasPrefix(x.Remedy, "none is"):
		case x.Check == "claims":
			claims = append(claims, x)
		default:
			others = append(others, x)
		}
	}
	return append(claims, others...)
}

// paste types a remedy, and what that prints as the next one, and so on.
func paste(work, remedy string) (said string) {
	for range 4 {
		cmd := exec.Command("sh", "-c", strings.ReplaceAll(remedy, "--reason WHY", "--reason 'a test'"))
		cmd.Dir = work
		timer := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
		out, _ := cmd.Output()
		timer.Stop()
		said += string(out)
		remedy = ""
		for line := range strings.Lines(string(out)) {
			var x struct{ Remedy string }
			if json.Unmarshal([]byte(line), &x) == nil && x.Remedy != "" {
				remedy = x.Remedy
			}
		}
		if remedy == "" || strings.HasPrefix(remedy, "none is") {
			break
		}
	}
	return said
}
