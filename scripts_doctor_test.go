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
	Code, Check, Status, Condition, Path, Remedy string
	Fail                                         int // of the summary
}

// examine runs fsdoctor over what a script left. It must end, with the status that its summary says, and must have passed over
// nothing that a plain walk finds: each lease, each owner claim and each root of a registry with the word that its own program has for
// it, each protocol file that is no regular file.
func examine(work string) error {
	found, err := checked(work)
	if err != nil {
		return err
	}
	return filepath.WalkDir(work, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // the script took a right away, or something of it is still running
		}
		skip, complaint := passedOver(path, d, found)
		for range 5 { // what ends or expires meanwhile has another word a moment later
			if _, err := os.Lstat(path); complaint == nil || err != nil {
				break
			}
			time.Sleep(200 * time.Millisecond)
			if found, complaint = checked(work); complaint == nil {
				skip, complaint = passedOver(path, d, found)
			}
		}
		if skip && complaint == nil {
			return fs.SkipDir
		}
		return complaint
	})
}

// checked is what fsdoctor says of a directory.
func checked(dir string) (found []examined, err error) {
	cmd := exec.Command("fsdoctor", "check", "--format", "json", dir)
	timer := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	out, err := cmd.Output()
	timer.Stop()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	status := cmd.ProcessState.ExitCode()
	for line := range strings.Lines(string(out)) {
		var x examined
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		found = append(found, x)
	}
	if len(found) == 0 || found[len(found)-1].Code != "summary" || status != min(found[len(found)-1].Fail, 1) {
		return nil, fmt.Errorf("status %d: %s", status, out)
	}
	return found, nil
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
		for root, word := range registryWords(path) {
			if !says("registry", func(x examined) bool { return x.Condition == word && (root == "" || x.Path == root) }) {
				return true, fmt.Errorf("regctl says %q of %q in %s, and fsdoctor does not", word, root, path)
			}
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
	case name == fence.ClaimName:
		word := fenceWord(filepath.Dir(path))
		if !says("fences", func(x examined) bool { return below(x) && x.Condition == word }) {
			return false, fmt.Errorf("fencectl says %q of %s, and fsdoctor does not", word, path)
		}
	}
	switch name := d.Name(); {
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
	said := objects("leasectl", "status", "--lock", path)
	if len(said) != 1 {
		return fmt.Sprintf("%+v", said)
	}
	return said[0].Code
}

// fenceWord is the doctor's word for what fencectl explains of a session directory: why an owner would be refused, or else what it
// would find.
func fenceWord(dir string) string {
	said := objects("fencectl", "explain", "--dir", dir)
	switch {
	case len(said) != 1:
		return fmt.Sprintf("%+v", said)
	case said[0].Code != "admitted":
		return said[0].Code
	case said[0].Claim.State == "reserved":
		return "reservation-abandoned"
	case said[0].Claim.State != "closed" && said[0].Verdict == "dead":
		return fence.CodeOwnerDead
	}
	return said[0].Claim.State
}

// registryWords are the doctor's words for what regctl lists of a state home, by root; a refusal of the whole list is of "".
func registryWords(home string) map[string]string {
	words := map[string]string{}
	for _, x := range objects("regctl", "list", "--state-home", home) {
		switch {
		case x.OK && x.Directory != "":
			words[x.Root] = x.Directory
		case x.OK && x.Verdict != "live":
			words[x.Root] = "owner-" + x.Verdict
		default:
			words[x.Root] = x.Code
		}
	}
	return words
}

// word is what the tests take from an object of the owning programs.
type word struct {
	OK                             bool
	Code, Root, Directory, Verdict string
	Claim                          struct{ State string }
}

// objects are what a program prints. It must end.
func objects(args ...string) (words []word) {
	args = slices.Insert(args, 2, "--format", "json")
	cmd := exec.Command(args[0], args[1:]...)
	timer := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer timer.Stop()
	out, _ := cmd.Output()
	for line := range strings.Lines(string(out)) {
		var x word
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			x.Code = fmt.Sprintf("%q", line)
		}
		words = append(words, x)
	}
	return words
}
