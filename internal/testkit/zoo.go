package testkit

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// zooNames are the names at which programs expect a regular file, by the directory that they are expected in.
var zooNames = map[string][]string{
	"state":         {"a.lock", "a.lock.mutex", "a.lock.journal", "a.lock.stage"},
	"session":       {"entwurf-owner.json", "entwurf-owner.tx", "entwurf-owner.hold", "entwurf-owner.breaks.jsonl"},
	"home/registry": {"format.json", "roots.json", "registry.lock"},
	"home/roots/0123456789abcdef0123456789abcdef": {
		"format.json", "config.json", "registration.json", "owner.lock", "checkout.lock", "local-capability.json",
	},
	"garden/meta-sessions": {"20260101T000000-abcdef.meta.json"},
	"fleet":                {"fleet.json", "package.json"},
	"repo/.git":            {"index.lock"},
}

// zooKinds make what should be no state file, each at every one of the names.
var zooKinds = map[string]func(path string) error{
	"fifo":      func(path string) error { return unix.Mkfifo(path, 0o644) },
	"socket":    socketNode(unix.Mknod),
	"directory": func(path string) error { return os.Mkdir(path, 0o755) },
	"dangling":  func(path string) error { return os.Symlink("nowhere", path) },
	"loop":      func(path string) error { return os.Symlink(filepath.Base(path), path) },
	"zero":      func(path string) error { return os.Symlink("/dev/zero", path) },
	"to-fifo":   toFIFO,
	"deep":      func(path string) error { return os.WriteFile(path, deepJSON(), 0o644) },
	"sparse":    sparse,
	"empty":     func(path string) error { return os.WriteFile(path, nil, 0o644) },
	"nul":       func(path string) error { return os.WriteFile(path, make([]byte, 1466), 0o644) },
	"closed":    func(path string) error { return os.WriteFile(path, []byte("{}"), 0o000) },
}

// Zoo is a directory with everything that does harm, and what keeps it harmful.
type Zoo struct {
	Dir string

	open []*os.File // peers of pipes, and kernel leases
}

// NewZoo fills a directory, which may be there. Root adds device nodes. Close lets go of pipes and leases.
func NewZoo(dir string) (*Zoo, error) {
	z := &Zoo{Dir: dir}
	if err := z.fill(); err != nil {
		z.Close()
		return nil, err
	}
	return z, nil
}

// Close ends what other processes can notice of the zoo; the files stay.
func (z *Zoo) Close() {
	for _, f := range z.open {
		f.Close()
	}
	z.open = nil
}

func (z *Zoo) fill() error {
	kinds := zooKinds
	if os.Geteuid() == 0 {
		kinds = map[string]func(string) error{"device": nullDevice(unix.Mknod)}
		for name, f := range zooKinds {
			kinds[name] = f
		}
	}
	for kind, plant := range kinds {
		for place, names := range zooNames {
			dir := filepath.Join(z.Dir, kind, place)
			if err := scene(dir); err != nil {
				return err
			}
			for _, name := range names {
				if err := plant(filepath.Join(dir, name)); err != nil {
					return fmt.Errorf("%s at %s/%s: %w", kind, place, name, err)
				}
			}
		}
	}
	for _, more := range []func() error{z.names, z.peers, z.leases, z.loop} {
		if err := more(); err != nil {
			return err
		}
	}
	return nil
}

// scene makes a directory, and what makes it be taken for what it is.
func scene(dir string) error {
	err := os.MkdirAll(dir, 0o755)
	for _, name := range []string{"objects", "refs"} {
		if err == nil && filepath.Base(dir) == ".git" {
			err = os.MkdirAll(filepath.Join(dir, name), 0o755)
		}
	}
	if err == nil && filepath.Base(dir) == ".git" {
		err = os.WriteFile(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/main\n"), 0o644)
	}
	return err
}

// names are names that break lines, act on terminals or are no text.
func (z *Zoo) names() error {
	dir := filepath.Join(z.Dir, "names", "state")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"new\nline", "esc\x1b[2J\x1b]0;title\a", "bytes\xff\xfe", "tab\tquote\"'", "\u2028", "-rf", "$(touch PWNED)", " "} {
		if err := unix.Mkfifo(filepath.Join(dir, name+".lock"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// peers are pipes with a reader, with a writer, and with bytes that wait.
func (z *Zoo) peers() error {
	dir := filepath.Join(z.Dir, "peers", "state")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"reader", "writer", "bytes"} {
		path := filepath.Join(dir, name+".lock")
		if err := unix.Mkfifo(path, 0o644); err != nil {
			return err
		}
		mode := os.O_RDWR
		if name == "reader" {
			mode = os.O_RDONLY | unix.O_NONBLOCK
		}
		f, err := os.OpenFile(path, mode, 0)
		if err != nil {
			return err
		}
		z.open = append(z.open, f)
		if name == "bytes" {
			if _, err := f.WriteString("{}\n"); err != nil {
				return err
			}
		}
	}
	return nil
}

// leases are files under a kernel lease of this process: an open that waits would wait for it to be given up.
func (z *Zoo) leases() error {
	for place, names := range zooNames {
		dir := filepath.Join(z.Dir, "leased", place)
		if err := scene(dir); err != nil {
			return err
		}
		for _, name := range names {
			f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE, 0o644)
			if err != nil {
				return err
			}
			z.open = append(z.open, f)
			if _, err := f.WriteString("{}"); err != nil {
				return err
			}
			// Not every filesystem gives leases; the file is there all the same.
			_ = KernelLease(f)
		}
	}
	return nil
}

// loop is a directory that contains itself.
func (z *Zoo) loop() error {
	dir := filepath.Join(z.Dir, "loops", "inner")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.Symlink("..", filepath.Join(dir, "outer"))
}

// mkzoo DIR: a Zoo, harmful until the script ends.
func mkzoo(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: mkzoo DIR")
	}
	z, err := NewZoo(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Defer(z.Close)
}

// socketNode makes a socket that nobody listens on, at a path of any length.
func socketNode[N int | uint64](mknod func(path string, mode uint32, device N) error) func(path string) error {
	return func(path string) error { return mknod(path, unix.S_IFSOCK|0o644, 0) }
}

func toFIFO(path string) error {
	if err := unix.Mkfifo(path+"-pipe", 0o644); err != nil {
		return err
	}
	return os.Symlink(filepath.Base(path)+"-pipe", path)
}

// sparse is a file of 5 GB with nothing in it.
func sparse(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Truncate(5 << 30)
}

// deepJSON is 100 000 levels of JSON.
func deepJSON() []byte {
	const levels = 100_000
	return append(bytes.Repeat([]byte("["), levels), strings.Repeat("]", levels)...)
}
