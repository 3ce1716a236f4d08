package fencetest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/internal/testkit"
)

// installLockfile installs npm's proper-lockfile for a test and all below it, and returns where.
func installLockfile(t *testing.T) (modules string) {
	t.Helper()
	testkit.NeedTool(t, "node")
	testkit.NeedTool(t, "npm")
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "install", "--prefix", dir, "--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts", "proper-lockfile@4.1.2")
	out, err := cmd.CombinedOutput()
	testkit.Need(t, err == nil, "npm's registry, for proper-lockfile: "+string(out))
	return filepath.Join(dir, "node_modules")
}

// lockedScene is a scene whose directory is selected by way of a symbolic link, so that its native lease has two names.
func lockedScene(t *testing.T, modules string) *scene {
	t.Helper()
	s := newScene(t)
	s.modules = modules
	s.byLink()
	return s
}

// byLink selects the directory by way of a symbolic link.
func (s *scene) byLink() {
	s.Helper()
	link := filepath.Join(filepath.Dir(s.dir), "link")
	s.must(os.Symlink(filepath.Base(s.dir), link))
	s.dir = link
}

// lockPath is what proper-lockfile makes for the scene's directory.
func (s *scene) lockPath(realpath bool) string {
	s.Helper()
	if !realpath {
		return s.dir + ".lock"
	}
	real, err := filepath.EvalSymlinks(s.dir)
	s.must(err)
	return real + ".lock"
}

// options are those of a lock: proper-lockfile's defaults where they are zero.
type options struct {
	Stale    int  `json:"stale,omitzero"` // milliseconds
	Realpath bool `json:"realpath"`
}

func (o options) String() string {
	b, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// script is the file that node runs.
func (s *scene) script() string {
	s.Helper()
	path, err := filepath.Abs("testdata/lock.js")
	s.must(err)
	return path
}

// node is a node process that seeks locks and keeps those that it gets until it is ended.
type node struct {
	s   *scene
	cmd *exec.Cmd
	in  io.Closer
	out string
}

// node starts one. With "again" it tries until it has them all.
func (s *scene) node(how string, locks ...options) *node {
	s.Helper()
	argv := []string{"node", s.script(), how, s.dir}
	for _, o := range locks {
		argv = append(argv, o.String())
	}
	n := &node{s: s, cmd: s.command(argv...), out: s.file("node" + time.Now().Format("150405.000000000"))}
	out, err := os.Create(n.out)
	s.must(err)
	defer out.Close()
	n.cmd.Stdout, n.cmd.Stderr = out, os.Stderr
	n.in, err = n.cmd.StdinPipe()
	s.must(err)
	s.must(n.cmd.Start())
	s.Cleanup(func() { _ = n.cmd.Process.Kill() })
	return n
}

// said are the events of a name in a node's output so far.
func said(text, name string) (events []string) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, `"event":"`+name+`"`) {
			events = append(events, strings.TrimSpace(line))
		}
	}
	return events
}

func (n *node) said(name string) []string {
	n.s.Helper()
	return said(n.s.read(n.out), name)
}

// holds waits until the node process has so many locks.
func (n *node) holds(count int) {
	n.s.Helper()
	n.s.await("node's locks", func() bool { return len(n.said("held")) == count })
}

// end lets the node process release what it has, and returns how many of its tries were refused.
func (n *node) end() (tries int) {
	n.s.Helper()
	n.s.must(n.in.Close())
	if err := n.cmd.Wait(); err != nil {
		n.s.Error(err)
	}
	if text := n.s.read(n.out); len(said(text, "compromised"))+len(said(text, "not-released")) > 0 {
		n.s.Errorf("node's lock was not left alone:\n%s", text)
	}
	var ended struct{ Tries int }
	if last := n.said("ended"); len(last) != 1 || json.NewDecoder(bytes.NewBufferString(last[0])).Decode(&ended) != nil {
		n.s.Errorf("node ended with %q", n.s.read(n.out))
	}
	return ended.Tries
}
