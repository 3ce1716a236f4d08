package registry

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/internal/testkit/fusekit"
)

// TestTwoSpellingsOfOneDirectoryAreOneRoot is the other half of cases B65 and B66: on a filesystem that folds or normalises names
// the second spelling meets the first one's row, whose stored spelling is shown.
func TestTwoSpellingsOfOneDirectoryAreOneRoot(t *testing.T) {
	for name, c := range map[string]struct {
		fold          func(string) string
		first, second string
	}{
		"case":          {strings.ToLower, "Proj", "pROJ"},
		"normalisation": {func(s string) string { return strings.ReplaceAll(s, "e\u0301", "é") }, "caf\u00e9", "cafe\u0301"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			disk := fusekit.Mount(t, fusekit.Options{Fold: c.fold})
			for _, dir := range []string{c.first + "/sub", "other"} {
				if err := os.MkdirAll(filepath.Join(disk.Backing, dir), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			first, second := filepath.Join(disk.Dir, c.first), filepath.Join(disk.Dir, c.second)
			if _, err := w.Acquire(t.Context(), w.request(first)); err != nil {
				t.Fatal(err)
			}
			for root, relation := range map[string]string{
				second: "is the same directory as " + first, filepath.Join(second, "sub"): "is inside " + first, disk.Dir: "is an ancestor of " + first,
			} {
				_, err := w.Acquire(t.Context(), w.request(root))
				var refusal *Refusal
				if !errors.As(err, &refusal) || refusal.Code != CodeConflict || refusal.Row == nil || refusal.Row.Root != first || !strings.Contains(err.Error(), relation) {
					t.Errorf("%s: %v; want that it %s", root, err, relation)
				}
			}
			if _, err := w.Acquire(t.Context(), w.request(filepath.Join(disk.Dir, "other"))); err != nil {
				t.Error(err)
			}
		})
	}
}
