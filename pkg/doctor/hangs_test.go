package doctor

import (
	"fmt"
	"testing"
)

func TestWhatIsNotWaitedForAgain(t *testing.T) {
	t.Parallel()
	mounts := map[string]bool{"/": true, "/mnt/a": true, "/mnt/b": true, "/mnt/c": true}
	for _, c := range []struct {
		name              string
		named, hung       []string
		hopeless, hopeful []string
		manyApart         string // where so many hang, each in a directory of its own, that the filesystem is given up
	}{
		{name: "one", hung: []string{"/d/x"}, hopeless: []string{"/d/x", "/d/x/below", "/d/./x/"}, hopeful: []string{"/d", "/d/y", "/d/xy"}},
		{name: "two in a directory", hung: []string{"/d/x", "/d/y"}, hopeless: []string{"/d", "/d/z", "/d/z/below"}, hopeful: []string{"/e", "/"}},
		{name: "two directories in one", hung: []string{"/d/e/x", "/d/e/y", "/d/f/x", "/d/f/y"}, hopeless: []string{"/d/g"}, hopeful: []string{"/e"}},
		{name: "mount points beside each other", hung: []string{"/mnt/a", "/mnt/b"}, hopeless: []string{"/mnt/a/x"}, hopeful: []string{"/mnt/c", "/mnt"}},
		{name: "two in mounted directories", hung: []string{"/mnt/a/x", "/mnt/a/y", "/mnt/b/x", "/mnt/b/y"}, hopeless: []string{"/mnt/a/z"}, hopeful: []string{"/mnt/c"}},
		{name: "named", named: []string{"/d/c", "/d/x"}, hung: []string{"/d/x", "/d/a", "/d/b"}, hopeless: []string{"/d/x", "/d/z"}, hopeful: []string{"/d/c", "/d/c/x"}},
		{name: "in what is named", named: []string{"/d"}, hung: []string{"/d/x", "/d/y"}, hopeless: []string{"/d", "/d/z"}, hopeful: []string{"/e"}},
		{name: "a filesystem", manyApart: "/mnt/a", hopeless: []string{"/mnt/a", "/mnt/a/good"}, hopeful: []string{"/mnt/b", "/mnt"}},
		{name: "the root's filesystem", manyApart: "", hopeless: []string{"/good", "/mnt/a"}},
		{name: "relative", named: []string{"."}, hung: []string{"s/x", "./s/y"}, hopeless: []string{"s/z"}, hopeful: []string{"t"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHangs(c.named)
			for _, path := range append(c.hopeless, c.hopeful...) {
				if h.hopeless(path) {
					t.Errorf("%s is hopeless before anything hung", path)
				}
			}
			for _, path := range c.hung {
				h.note(path, mounts)
			}
			for i := 0; i < enoughInFilesystem && c.hung == nil; i++ {
				h.note(fmt.Sprintf("%s/d%d/x", c.manyApart, i), mounts)
			}
			for _, path := range c.hopeless {
				if !h.hopeless(path) {
					t.Errorf("%s would be waited for", path)
				}
			}
			for _, path := range c.hopeful {
				if h.hopeless(path) {
					t.Errorf("%s is given up", path)
				}
			}
		})
	}
}
