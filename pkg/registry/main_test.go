package registry

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"holdfast/internal/testkit"
	"holdfast/pkg/procid"
)

func TestMain(m *testing.M) { testkit.Main(m, parts) }

// parts are what this test binary does as another process.
var parts = map[string]testkit.Part{"acquire": partAcquire, "list": partList}

// capabilityByte fills the capability of every service that a test acquires.
const capabilityByte = 0xa7

// world is a state home and a directory for roots, both empty.
type world struct {
	*Home
	t    testing.TB
	dir  string
	self procid.Identity
	port int
}

func newWorld(t testing.TB) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	self, err := procid.Self()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, self: self, port: 4100}
	w.Home = w.open(testOptions())
	return w
}

// testOptions give IDs that count, and a capability that is known.
func testOptions() Options {
	var n atomic.Int64
	return Options{
		Tool:  "test",
		NewID: func() string { return fmt.Sprintf("aaaaaaaa-0000-4000-8000-%012d", n.Add(1)) },
		Rand: func(b []byte) error {
			for i := range b {
				b[i] = capabilityByte
			}
			return nil
		},
	}
}

func (w *world) open(opts Options) *Home {
	w.t.Helper()
	h, err := Open(filepath.Join(w.dir, "home"), opts)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { h.Close() })
	return h
}

// root makes a directory.
func (w *world) root(name string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(path, 0o700); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// request asks for a root at a port of its own.
func (w *world) request(root string) Acquire {
	w.port++
	return Acquire{Root: root, Requested: fmt.Sprintf("http://127.0.0.1:%d", w.port), Owner: w.self}
}

func (w *world) acquire(name string) *Acquired {
	w.t.Helper()
	a, err := w.Acquire(context.Background(), w.request(w.root(name)))
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// file is the path of a file of a root.
func (w *world) file(root, name string) string {
	return filepath.Join(w.path, rootsDir, RootID(filepath.Join(w.dir, root)), name)
}

func (w *world) read(path string) []byte {
	w.t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// write puts bytes in a file, in place.
func (w *world) write(path string, b []byte) {
	w.t.Helper()
	if err := os.WriteFile(path, b, fileMode); err != nil {
		w.t.Fatal(err)
	}
}

// code is the code of an error; empty for none.
func code(err error) string {
	if err == nil {
		return ""
	}
	return codeOf(err)
}
