package fence

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"holdfast/pkg/procid"
)

// selectedPlace is a real session directory R whose donor selected it as the symlink S, and its garden.
type selectedPlace struct {
	*testing.T
	root, real, selected string
	claim                *Claim
	parent               procid.Identity
}

func newSelectedPlace(t *testing.T) *selectedPlace {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	s := &selectedPlace{T: t, root: root, real: filepath.Join(root, "r"), selected: filepath.Join(root, "s")}
	s.must(err)
	s.parent, err = procid.Self()
	s.must(err)
	for _, dir := range []string{"r", "other", "meta", "meta/" + sessionsDir, "meta/" + receiversDir} {
		s.must(os.Mkdir(filepath.Join(root, dir), 0o755))
	}
	s.must(os.Symlink("r", s.selected))
	s.claim = plainClosed.claim().read(t)
	s.claim.Resource, s.claim.Selected.Directory = s.real, s.selected
	s.claim.Owner = s.parent
	s.enroll(s.real)
	return s
}

func (s *selectedPlace) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *selectedPlace) garden() Garden {
	return Garden{ID: specGarden, MetaRoot: filepath.Join(s.root, "meta")}
}

// enroll writes the pair, whose location names the directory.
func (s *selectedPlace) enroll(directory string) {
	s.Helper()
	b := bindingOf(donorOf(s.claim))
	b.Location.NativeDirectory = directory
	s.must(os.WriteFile(s.garden().recordPath(), b.Record.Encode(), 0o600))
	s.must(os.WriteFile(s.garden().locationPath(), b.Location.encode(), 0o600))
}

// reserve writes the claim and reserves.
func (s *selectedPlace) reserve() (string, *Claim) {
	s.Helper()
	s.must(os.WriteFile(filepath.Join(s.real, ClaimName), s.claim.Encode(), 0o600))
	made, err := MakeReservation(context.Background(), Reserve{Garden: s.garden(), Owner: s.parent}, Options{})
	if err != nil {
		return answerOf(nil, err), nil
	}
	return "", made.Claim
}

// TestAReservationLooksWhereTheDonorSelected: its name of the directory is the one that has to lead there, and where the native
// lease is looked for, beside the directory itself.
func TestAReservationLooksWhereTheDonorSelected(t *testing.T) {
	repointed := func(to string) func(s *selectedPlace) error {
		return func(s *selectedPlace) error {
			s.must(os.Remove(s.selected))
			return os.Symlink(to, s.selected)
		}
	}
	locked := func(path func(s *selectedPlace) string) func(s *selectedPlace) error {
		return func(s *selectedPlace) error { return os.Mkdir(path(s)+".lock", 0o755) }
	}
	for _, c := range []struct {
		name, code string
		change     func(s *selectedPlace) error
	}{
		{"as it was", "", func(*selectedPlace) error { return nil }},
		{"a lease at the selection", CodeLegacyLease, locked(func(s *selectedPlace) string { return s.selected })},
		{"a lease at the real path", CodeLegacyLease, locked(func(s *selectedPlace) string { return s.real })},
		{"a lease elsewhere", "", locked(func(s *selectedPlace) string { return filepath.Join(s.root, "other") })},
		{"the selection leads elsewhere", CodeAliasMoved, repointed("other")},
		{"the selection is gone", CodeAliasMoved, func(s *selectedPlace) error { return os.Remove(s.selected) }},
		{"the selection dangles", CodeAliasMoved, repointed("nowhere")},
		{"the selection leads in a circle", CodeAliasMoved, repointed("s")},
		{"the selection leads through a file", CodeAliasMoved, repointed("r/" + ClaimName + "/x")},
		{"the selection is a file", CodeAliasMoved, repointed("r/" + ClaimName)},
		{"the location's directory is a symlink by now", CodeRecordUnbound, func(s *selectedPlace) error { s.enroll(s.selected); return nil }},
		{"the location's directory is gone", "directory-invalid", func(s *selectedPlace) error { s.enroll(filepath.Join(s.root, "nowhere")); return nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSelectedPlace(t)
			s.must(c.change(s))
			code, made := s.reserve()
			if code != c.code {
				t.Errorf("answered with %q, want %q", code, c.code)
			}
			if c.code == "" && (made.Selected != s.claim.Selected || made.Resource != s.real) {
				t.Errorf("reserved as %+v", made)
			}
		})
	}
}

// TestAReservationIsRefusedForItsHolderWhateverTheSelectionIs: what is looked up counts only where the order comes to it.
func TestAReservationIsRefusedForItsHolderWhateverTheSelectionIs(t *testing.T) {
	s := newSelectedPlace(t)
	s.claim.State, s.claim.Lease, s.claim.End = StorageOpen, Held, nil
	s.must(os.Remove(s.selected))
	s.must(os.Symlink("s", s.selected))
	if code, _ := s.reserve(); code != CodeOwnerLive {
		t.Errorf("answered with %q", code)
	}
}

// TestFourRootsAreOneMetaRootsChildren and nothing else is reserved with them.
func TestFourRootsAreOneMetaRootsChildren(t *testing.T) {
	standard := Roots{"/m/meta-sessions", "/m/meta-mailbox", "/m/meta-senders", "/m/meta-receivers"}
	if root, err := standard.MetaRoot(); root != "/m" || err != nil {
		t.Errorf("the meta root is %q, %v", root, err)
	}
	for name, change := range map[string]func(r *Roots){
		"another root's sessions": func(r *Roots) { r.Sessions = "/n/meta-sessions" },
		"another root's mailbox":  func(r *Roots) { r.Mailbox = "/n/meta-mailbox" },
		"another name":            func(r *Roots) { r.Senders = "/m/senders" },
		"exchanged":               func(r *Roots) { r.Senders, r.Receivers = r.Receivers, r.Senders },
		"one missing":             func(r *Roots) { r.Receivers = "" },
		"deeper":                  func(r *Roots) { r.Receivers = "/m/x/meta-receivers" },
	} {
		r := standard
		change(&r)
		if root, err := r.MetaRoot(); answerOf(nil, err) != CodeMetaRootSplit {
			t.Errorf("%s: %q, %v", name, root, err)
		}
	}
}
