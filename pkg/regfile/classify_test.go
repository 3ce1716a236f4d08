package regfile

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"holdfast/internal/testkit"
)

func TestClassifySaysWhatEveryPathIs(t *testing.T) {
	dir := t.TempDir()
	real, err := filepath.EvalSymlinks(dir)
	check(t, err)
	at := func(name string) string { return filepath.Join(dir, name) }
	kinds := entries(t, dir)
	kinds["file"], kinds["nothing"], kinds["file/inside"], kinds["nothing/inside"] = Regular, Absent, Absent, Absent
	type end struct {
		target, to string
		kind       Kind
	}
	ends := map[string]end{
		"link":                {"file", "file", Regular},
		"long way":            {"link", "file", Regular},
		"link to a fifo":      {"fifo", "fifo", FIFO},
		"link to a directory": {"directory", "directory", Directory},
		"dangling":            {"nothing", "", Absent},
		"through a file":      {"file/x", "", Absent},
		"loop":                {"loop", "", Unexaminable},
	}
	for name, kind := range kinds {
		testkit.Within(t, 10*time.Second, func() {
			e := Classify(at(name))
			if e.Path != at(name) || e.Stamp.Kind != kind || e.Err != nil {
				t.Errorf("%s: %+v, want %s", name, e, kind)
			}
			if (kind == Absent) != (e.Stamp == Stamp{Kind: Absent}) {
				t.Errorf("%s: stamp %+v", name, e.Stamp)
			}
			want := ends[name]
			if want.to != "" {
				want.to = filepath.Join(real, want.to)
			}
			if e.Target != want.target || e.ResolvesTo != want.to || e.ResolvesKind != want.kind {
				t.Errorf("%s ends at %q %q %q, want %+v", name, e.Target, e.ResolvesTo, e.ResolvesKind, want)
			}
		})
	}
}

func TestClassifyFollowsNoFinalLinkOfARelativePath(t *testing.T) {
	t.Chdir(t.TempDir())
	check(t, os.Symlink("a/b", "link"))
	check(t, os.Mkdir("a", 0o755))
	write(t, "a/b", "x")
	if e := Classify("link"); e.Stamp.Kind != Symlink || e.ResolvesTo != filepath.Join("a", "b") || e.ResolvesKind != Regular {
		t.Errorf("%+v", e)
	}
}

// The links under /proc/self/fd lead to things that have no path, as /dev/stdin does in a pipeline.
func TestClassifySeesAPipeBehindAMagicLink(t *testing.T) {
	r, w, err := os.Pipe()
	check(t, err)
	defer r.Close()
	defer w.Close()
	path := "/proc/self/fd/" + strconv.Itoa(int(r.Fd()))
	if _, err := os.Lstat(path); err != nil {
		testkit.Need(t, false, "/proc/self/fd")
	}
	if e := Classify(path); e.Stamp.Kind != Symlink || e.ResolvesKind != FIFO || e.ResolvesTo != "" {
		t.Errorf("%+v", e)
	}
}

func TestEveryKindHasANoun(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range []Kind{Regular, Directory, Symlink, FIFO, Socket, CharDevice, BlockDevice, Absent, Unexaminable} {
		if noun := k.Noun(); noun == "" || seen[noun] {
			t.Errorf("%s: %q", k, noun)
		} else {
			seen[noun] = true
		}
	}
	if kindOf(0) != Unexaminable {
		t.Error("a mode without a type is examinable")
	}
}

func TestPrintableTextIsOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"state/a b.lock": "state/a b.lock", "größe": "größe", "a\nb": `"a\nb"`, "\x1b[31m": `"\x1b[31m"`, "\xff": `"\xff"`,
		"a\u202eb": `"a\u202eb"`, "a\u2028b": `"a\u2028b"`, "": "",
	} {
		if got := Printable(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}
