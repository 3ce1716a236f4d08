package holdfast_test

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// secretState is a state of a root, made from a service that runs.
type secretState struct {
	name string
	make func(t *testing.T, s *secretHome)
}

// secretStates is every state that a verb may meet, among them those in which the capability itself is damaged.
var secretStates = []secretState{
	{"idle", func(*testing.T, *secretHome) {}},
	{"stopping", func(t *testing.T, s *secretHome) { s.regctl(t, "phase", "stopping", "--receipt", s.receipt) }},
	{"quarantined", func(t *testing.T, s *secretHome) { s.regctl(t, "phase", "quarantined", "--receipt", s.receipt) }},
	{"fenced", func(t *testing.T, s *secretHome) { s.plant(t, "registry/registry.lock", []byte("somebody\n")) }},
	{"root gone", func(t *testing.T, s *secretHome) { remove(t, filepath.Join(s.dir, "root")) }},
	{"registry corrupt", func(t *testing.T, s *secretHome) { s.plant(t, "registry/roots.json", []byte("{")) }},
	{"row gone", func(t *testing.T, s *secretHome) {
		s.plant(t, "registry/roots.json", []byte(`{"schema":"holdfast-registry/1","entries":[]}`+"\n"))
	}},
	{"another name", func(t *testing.T, s *secretHome) { s.plant(t, s.file("x"), s.secretFile) }},
	{"capability with a space", func(t *testing.T, s *secretHome) { s.damage(t, append(bytes.Clone(s.secretFile), ' ')) }},
	{"capability cut", func(t *testing.T, s *secretHome) { s.damage(t, s.secretFile[:len(s.secretFile)-2]) }},
	{"capability unquoted", func(t *testing.T, s *secretHome) {
		s.damage(t, bytes.Replace(s.secretFile, []byte(`"`+s.secret), []byte(s.secret), 1))
	}},
	{"capability as a key", func(t *testing.T, s *secretHome) {
		s.damage(t, []byte(`{"schema":"holdfast-service-local-capability/1","`+s.secret+`":1,"`+s.secret+`":1}`))
	}},
	{"capability as another type", func(t *testing.T, s *secretHome) {
		s.damage(t, bytes.Replace(s.secretFile, []byte(`"`+s.secret+`"`), []byte(`["`+s.secret+`"]`), 1))
	}},
	{"capability as schema", func(t *testing.T, s *secretHome) { s.damage(t, []byte(`{"schema":"`+s.secret+`"}`)) }},
	{"capability alone", func(t *testing.T, s *secretHome) { s.damage(t, []byte(s.secret)) }},
	{"capability of another epoch", func(t *testing.T, s *secretHome) {
		s.damage(t, bytes.Replace(s.secretFile, []byte(`"epoch":"`), []byte(`"epoch":"00000000-0000-4000-8000-000000000000","x":"`), 1))
	}},
	{"capability for all to read", func(t *testing.T, s *secretHome) {
		if err := os.Chmod(filepath.Join(s.home, s.file("local-capability.json")), 0o644); err != nil {
			t.Fatal(err)
		}
	}},
	{"capability huge", func(t *testing.T, s *secretHome) { s.damage(t, bytes.Repeat(s.secretFile, 2000)) }},
	{"capability gone", func(t *testing.T, s *secretHome) { remove(t, filepath.Join(s.home, s.file("local-capability.json"))) }},
	{"released", func(t *testing.T, s *secretHome) { s.regctl(t, "release", "--receipt", s.receipt) }},
}

// TestTheCapabilityIsNowhereElse runs every verb in every state and looks through everything that was printed, every receipt and
// every other file for the capability, in any of its forms, and for digests of it and of its file.
func TestTheCapabilityIsNowhereElse(t *testing.T) {
	for _, state := range secretStates {
		t.Run(state.name, func(t *testing.T) {
			t.Parallel()
			s := newSecretHome(t)
			state.make(t, s)
			for _, args := range [][]string{
				{"inspect", "--root", s.root}, {"inspect", "--root", s.root, "--format", "text"},
				{"list"}, {"list", "--probe"}, {"list", "--format", "text"},
				{"access", "--root", s.root, "--format", "text"}, {"assert", "--receipt", s.receipt},
				{"init", "--root", s.root, "--endpoint", "http://127.0.0.1:0"},
				{"acquire", "--root", s.root, "--endpoint", "http://127.0.0.1:4100", "--owner-pid", fmt.Sprint(os.Getpid())},
				{"access", "--root", s.root}, {"access", "--root", s.root, "--format", "sh"},
				{"phase", "idle", "--receipt", s.receipt}, {"release", "--receipt", s.receipt},
			} {
				printed := s.regctl(t, args...)
				allowed := args[0] == "access" && args[len(args)-1] != "text"
				s.search(t, strings.Join(args, " "), printed, allowed)
			}
			s.searchFiles(t)
		})
	}
}

// secretHome is a state home with one service, whose capability is known.
type secretHome struct {
	dir, home, root, receipt string
	secret                   string
	secretFile               []byte
	needles                  map[string]string // what must not be found, by its name
}

func newSecretHome(t *testing.T) *secretHome {
	dir := t.TempDir()
	s := &secretHome{dir: dir, home: filepath.Join(dir, "home"), root: filepath.Join(dir, "root"), receipt: filepath.Join(dir, "receipt")}
	if err := os.Mkdir(s.root, 0o700); err != nil {
		t.Fatal(err)
	}
	s.regctl(t, "acquire", "--root", s.root, "--endpoint", "http://127.0.0.1:4100", "--owner-pid", fmt.Sprint(os.Getpid()), "--receipt", s.receipt)
	var err error
	if s.secretFile, err = os.ReadFile(filepath.Join(s.home, s.file("local-capability.json"))); err != nil {
		t.Fatal(err)
	}
	var file struct{ Capability string }
	if err := json.Unmarshal(s.secretFile, &file); err != nil || len(file.Capability) != 43 {
		t.Fatalf("%v: %s", err, s.secretFile)
	}
	s.secret = file.Capability
	s.needles = needlesOf(t, s.secret, s.secretFile)
	return s
}

// needlesOf are the forms in which a secret could appear, without its raw text.
func needlesOf(t *testing.T, secret string, file []byte) map[string]string {
	raw, err := base64.RawURLEncoding.DecodeString(secret)
	if err != nil {
		t.Fatal(err)
	}
	needles := map[string]string{
		"its bytes": string(raw), "its hex": hex.EncodeToString(raw), "its base64": base64.RawStdEncoding.EncodeToString(raw)[:42],
		"its text in hex": hex.EncodeToString([]byte(secret)), "its text in base64": base64.RawStdEncoding.EncodeToString([]byte(secret))[:56],
		"its text backwards": backwards(secret), "half of it": secret[:16], "its other half": secret[27:],
	}
	for name, content := range map[string][]byte{"the bytes": raw, "the text": []byte(secret), "the file": file, "the file without its newline": bytes.TrimSuffix(file, []byte("\n"))} {
		for kind, sum := range map[string][]byte{"SHA-256": sum256(content), "SHA-1": sum1(content)} {
			needles[kind+" of "+name+" in hex"] = hex.EncodeToString(sum)[:16]
			needles[kind+" of "+name+" in base64"] = base64.RawStdEncoding.EncodeToString(sum)[:16]
			needles[kind+" of "+name+" in base64url"] = base64.RawURLEncoding.EncodeToString(sum)[:16]
		}
	}
	return needles
}

func sum256(b []byte) []byte { sum := sha256.Sum256(b); return sum[:] }
func sum1(b []byte) []byte   { sum := sha1.Sum(b); return sum[:] }

func backwards(text string) string {
	b := []byte(text)
	for i := range len(b) / 2 {
		b[i], b[len(b)-1-i] = b[len(b)-1-i], b[i]
	}
	return string(b)
}

// file is the path of a file of the root, below the state home.
func (s *secretHome) file(name string) string {
	return filepath.Join("roots", hex.EncodeToString(sum256([]byte(s.root)))[:32], name)
}

// regctl runs a verb and returns all that it printed.
func (s *secretHome) regctl(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "regctl", args...)
	cmd.Env = append(os.Environ(), "HOLDFAST_STATE_HOME="+s.home, "GORACE=atexit_sleep_ms=0")
	out, _ := cmd.CombinedOutput() // many of these are refusals
	if len(out) == 0 && args[0] != "list" {
		t.Errorf("%q prints nothing", args)
	}
	return string(out)
}

// plant puts bytes at a path below the state home, in place.
func (s *secretHome) plant(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.home, path), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// damage puts bytes into the capability's file, digests of which must not be found either.
func (s *secretHome) damage(t *testing.T, content []byte) {
	t.Helper()
	s.plant(t, s.file("local-capability.json"), content)
	s.needles["the damaged file's SHA-256"] = hex.EncodeToString(sum256(content))[:16]
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// search fails for everything of the secret that is in a text. Where it is allowed the text of it is, once.
func (s *secretHome) search(t *testing.T, what, text string, allowed bool) {
	t.Helper()
	if allowed {
		text = strings.Replace(text, s.secret, "", 1)
	}
	for name, needle := range s.needles {
		if strings.Contains(strings.ToLower(text), strings.ToLower(needle)) {
			t.Errorf("%s: %s", what, name)
		}
	}
}

// searchFiles looks through every file but the capability's own.
func (s *secretHome) searchFiles(t *testing.T) {
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "local-capability.json" || d.Name() == "x" {
			return err
		}
		content, err := os.ReadFile(path)
		s.search(t, path, string(content), false)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
