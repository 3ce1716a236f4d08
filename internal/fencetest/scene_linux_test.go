package fencetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/internal/testkit"
)

// patience is how long anything may take that is not bounded otherwise: the machine may be busy.
const patience = 60 * time.Second

// The codes and statuses that matter here.
const (
	live, dead, uncertain, otherHost = "live", "dead", "uncertain", "other-host"

	ownerLive, ownerUncertain = "owner-live", "owner-uncertain"

	statusLost, statusRefused = 124, 125
)

// scene is a session directory, and a place for what is not to be in it.
type scene struct {
	*testing.T
	dir     string       // as it is selected
	out     string       // tickets, and what commands write
	modules string       // where node finds its modules
	id      testkit.Mark // in the environment of everything that is started
}

func newScene(t *testing.T) *scene {
	t.Helper()
	t.Parallel()
	s := &scene{T: t, dir: filepath.Join(t.TempDir(), "s1"), out: t.TempDir(), id: testkit.NewMark(t)}
	s.must(os.Mkdir(s.dir, 0o755))
	return s
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scene) file(name string) string { return filepath.Join(s.out, name) }

// command is a program in the scene's environment.
func (s *scene) command(argv ...string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), string(s.id), "XDG_RUNTIME_DIR="+s.out, "OUT="+s.out, "D="+s.dir, "NODE_PATH="+s.modules)
	return cmd
}

// side is from where something is done: the words before a command, nothing for the test's own namespaces.
type side []string

func (p side) words(argv ...string) []string { return append(append([]string{}, p...), argv...) }

// answer is what a fencectl said.
type answer struct {
	Status int    `json:"-"`
	Stderr string `json:"-"`

	OK                     bool
	Code, Reason, Remedy   string
	Verdict, VerdictReason string
	Claim                  *claim
	Hold                   *struct {
		State   string
		Openers []int
	}
	Tx          *struct{ State string }
	NativeLease bool
}

// claim is an owner claim as far as it matters here.
type claim struct {
	State, Generation, Lease string
	Owner                    identity
	ReclaimedFrom            *struct{ State, Generation string }
	End                      *struct{ Storage, Lease, Cause string }
}

type identity struct {
	PID      int
	StartKey string
	Hostname string
}

// ask runs a verb of fencectl to its end.
func (s *scene) ask(from side, verb ...string) answer {
	s.Helper()
	var out, errs bytes.Buffer
	cmd := s.command(from.words(append([]string{"fencectl"}, append(verb, "--format", "json")...)...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	s.must(cmd.Start())
	timer := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Wait()
	return s.answered(cmd, out.String(), errs.String())
}

func (s *scene) answered(cmd *exec.Cmd, out, errs string) answer {
	s.Helper()
	a := answer{Status: testkit.StatusOf(cmd.ProcessState), Stderr: errs}
	if out == "" {
		out = objectIn(errs)
	}
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		s.Fatalf("%q: status %d, no object: %v\n%s%s", cmd.Args, a.Status, err, out, errs)
	}
	return a
}

// objectIn is the last line of a standard error that is an object.
func objectIn(errs string) (object string) {
	for line := range strings.Lines(errs) {
		if strings.HasPrefix(line, "{") {
			object = line
		}
	}
	return object
}

func (s *scene) show(from side) answer {
	s.Helper()
	return s.ask(from, "show", "--dir", s.dir)
}

// admit tries to become the owner, as a process that is gone right afterwards.
func (s *scene) admit(from side) answer {
	s.Helper()
	const script = `fencectl admit --dir "$D" --owner-pid $$ --ticket "$OUT/ticket.$$.$0" --format json; exit $?`
	var out, errs bytes.Buffer
	cmd := s.command(from.words("sh", "-c", script, time.Now().Format("150405.000000000"))...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	return s.answered(cmd, out.String(), errs.String())
}

// refused fails unless an admission from there is refused with the code and changes nothing.
func (s *scene) refused(from side, code string) answer {
	s.Helper()
	before := s.listing()
	a := s.admit(from)
	if a.OK || a.Code != code {
		s.Errorf("an admission by way of %q: %s, want %s: %s", from, a.Code, code, a.Reason)
	}
	s.same("a refused admission", before)
	return a
}

// admitted fails unless an admission from there succeeds.
func (s *scene) admitted(from side) answer {
	s.Helper()
	a := s.admit(from)
	if a.Code != "admitted" {
		s.Errorf("an admission by way of %q: %s: %s", from, a.Code, a.Reason)
	}
	return a
}

// verdict fails unless the owner is judged so from there.
func (s *scene) verdict(from side, want string) answer {
	s.Helper()
	a := s.show(from)
	if a.Verdict != want {
		s.Errorf("by way of %q the owner is %s, want %s: %s", from, a.Verdict, want, a.VerdictReason)
	}
	return a
}

// eventually waits until the owner is judged so from there: a process that was killed lives on for a moment.
func (s *scene) eventually(from side, want string) answer {
	s.Helper()
	var a answer
	s.await("verdict "+want, func() bool { a = s.show(from); return a.Verdict == want })
	return a
}

func (s *scene) await(what string, holds func() bool) {
	s.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatalf("waited in vain: %s", what)
		}
	}
}

func (s *scene) listing() string {
	s.Helper()
	real, err := filepath.EvalSymlinks(s.dir)
	s.must(err)
	text, err := testkit.Listing(real)
	s.must(err)
	return text
}

// same fails unless not a byte of the session directory has changed.
func (s *scene) same(what, before string) {
	s.Helper()
	if now := s.listing(); now != before {
		s.Errorf("%s changed the directory.\nbefore: %s\nnow: %s", what, before, now)
	}
}

// claim is the owner claim as the file has it; nil when there is none.
func (s *scene) claim() *claim {
	s.Helper()
	text, err := os.ReadFile(s.claimPath())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	s.must(err)
	c := &claim{}
	s.must(json.Unmarshal(text, c))
	return c
}

// isOpen reports whether a run's command has begun, and the run is done with saying so.
func (s *scene) isOpen() bool {
	s.Helper()
	c := s.claim()
	return c != nil && c.State == "storage-open" && !exists(filepath.Join(s.dir, "entwurf-owner.tx"))
}

func (s *scene) claimPath() string { return filepath.Join(s.dir, "entwurf-owner.json") }

// plant replaces a text in the claim.
func (s *scene) plant(old, replacement string) {
	s.Helper()
	text, err := os.ReadFile(s.claimPath())
	s.must(err)
	if !bytes.Contains(text, []byte(old)) {
		s.Fatalf("no %q in %s", old, text)
	}
	stage := s.claimPath() + ".planted"
	s.must(os.WriteFile(stage, bytes.ReplaceAll(text, []byte(old), []byte(replacement)), 0o600))
	s.must(os.Rename(stage, s.claimPath()))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func (s *scene) read(path string) string {
	s.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.Fatal(err)
	}
	return string(b)
}

// touch makes a file that something waits for.
func (s *scene) touch(name string) {
	s.Helper()
	s.must(os.WriteFile(s.file(name), nil, 0o666))
}
