package registry

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestOverlapIsByWholeSegments(t *testing.T) {
	for _, c := range []struct{ root, other, want string }{
		{"/x/app", "/x/app", "the same as"},
		{"/x/app/sub", "/x/app", "inside"},
		{"/x/app/sub/sub", "/x/app", "inside"},
		{"/x", "/x/app", "an ancestor of"},
		{"/", "/x/app", "an ancestor of"},
		{"/x/app", "/", "inside"},
		{"/", "/", "the same as"},
		{"/x/app2", "/x/app", ""},
		{"/x/ap", "/x/app", ""},
		{"/x/app-old", "/x/app", ""},
		{"/x/app.", "/x/app", ""},
		{"/x/App", "/x/app", ""},
		{"/y/x/app", "/x/app", ""},
	} {
		if got, overlaps := overlapText(c.root, c.other); got != c.want || overlaps != (c.want != "") {
			t.Errorf("%s is %q %s, want %q", c.root, got, c.other, c.want)
		}
	}
}

// TestOneSortFindsWhatPairsFind: comparing each row with the one that sorts before it finds an overlap exactly when comparing
// all with all does, and what it finds is one.
func TestOneSortFindsWhatPairsFind(t *testing.T) {
	// Few names, among them those that sort around the slash.
	name := rapid.SampledFrom([]string{"a", "b", "a!", "a-", "a.", "a0", "aa", "A", "ä", "a\u0301", " ", "~"})
	root := rapid.Custom(func(t *rapid.T) string { return "/" + strings.Join(rapid.SliceOfN(name, 0, 4).Draw(t, "names"), "/") })
	rapid.Check(t, func(t *rapid.T) {
		var rows []Reservation
		for _, r := range rapid.SliceOfN(root, 0, 8).Draw(t, "roots") {
			rows = append(rows, Reservation{Root: r})
		}
		pairs := false
		for i := range rows {
			for j := range i {
				_, overlaps := overlapText(rows[i].Root, rows[j].Root)
				pairs = pairs || overlaps
			}
		}
		a, b, found := overlapping(rows)
		if found != pairs {
			t.Fatalf("by one sort %v, in pairs %v", found, pairs)
		}
		if found && !within(a, b) {
			t.Fatalf("%s and %s", a, b)
		}
	})
}

func TestAnotherNameOfADirectoryIsThatDirectory(t *testing.T) {
	w := newWorld(t)
	w.root("real/a/sub")
	w.root("other")
	if err := os.Symlink("real", filepath.Join(w.dir, "link")); err != nil {
		t.Fatal(err)
	}
	// Rows whose text is not what is asked for, as a bind mount or a filesystem that folds names makes them.
	rows := []Reservation{
		{Root: filepath.Join(w.dir, "gone/for/good")},
		{Root: filepath.Join(w.dir, "link/a")},
	}
	for root, want := range map[string]string{
		"real/a": "the same directory as", "real/a/sub": "inside", "real": "an ancestor of", "other": "",
	} {
		row, relation, err := conflictingRow(filepath.Join(w.dir, root), rows)
		if err != nil || relation != want || (row != nil) != (want != "") {
			t.Errorf("%s is %q %v, %v; want %q", root, relation, row, err, want)
		}
		if row != nil && row.Root != rows[1].Root {
			t.Errorf("%s meets %s", root, row.Root)
		}
	}
}

// TestARowOutOfReachHurtsNoOther: a root that cannot be looked at is compared by text alone.
func TestARowOutOfReachHurtsNoOther(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"loop", "file"} {
		path := filepath.Join(w.dir, name)
		w.write(path+".txt", nil)
		if err := os.Symlink(map[string]string{"loop": "loop", "file": "file.txt"}[name], path); err != nil {
			t.Fatal(err)
		}
	}
	rows := []Reservation{
		{Root: filepath.Join(w.dir, "loop/x")}, {Root: filepath.Join(w.dir, "file/x")}, {Root: "/" + strings.Repeat("n", 300)},
	}
	if row, _, err := conflictingRow(w.root("mine"), rows); row != nil || err != nil {
		t.Errorf("%v, %v", row, err)
	}
	if row, relation, _ := conflictingRow(filepath.Join(w.dir, "loop"), rows); row == nil || relation != "an ancestor of" {
		t.Errorf("by text: %v, %s", row, relation)
	}
}

func TestPhysicalPaths(t *testing.T) {
	w := newWorld(t)
	w.root("real/a")
	w.root("real/b/c")
	for link, target := range map[string]string{"link": "real", "deep": "real/b/c", "nowhere": "missing", "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(w.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Join(w.dir, "link"))
	t.Setenv("PWD", filepath.Join(w.dir, "link")) // as a shell remembers it
	in := func(path string) string { return filepath.Join(w.dir, path) }
	for path, want := range map[string]string{
		".": in("real"), "a": in("real/a"), "./a//": in("real/a"), "../link/a": in("real/a"), "../deep/..": in("real/b"),
		"../deep/../new/er": in("real/b/new/er"), in("link"): in("real"), in("link/x/y"): in("real/x/y"), "/": "/", "/..": "/",
		in("not/there"): in("not/there"),
		"x/../a":        "", in("nowhere"): "", in("nowhere/x"): "", in("loop"): "", in("loop/x"): "",
	} {
		got, err := Physical(path)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %s, %v; want %s", path, got, err, want)
		}
		if root, err := newRoot(path); err == nil && root.path != want {
			t.Errorf("the root %s is %s, not %s", path, root.path, want)
		}
	}
}
