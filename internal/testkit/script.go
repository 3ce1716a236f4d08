package testkit

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/itchyny/gojq"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// command is a custom command of the scripts.
type command = func(ts *testscript.TestScript, neg bool, args []string)

// ScriptCommands are the commands that scripts have beside testscript's own.
func ScriptCommands() map[string]command {
	return map[string]command{
		"exits":     exits,
		"jq":        jq,
		"mkfifo":    onPath(func(path string) error { return unix.Mkfifo(path, 0o644) }),
		"mksocket":  onPath(mksocket),
		"mkdevice":  onPath(nullDevice(unix.Mknod)),
		"mksparse":  mksparse,
		"mknul":     mknul,
		"mkzoo":     mkzoo,
		"snapshot":  snapshot,
		"unchanged": unchanged,
		"waitfile":  waitfile,
	}
}

// nullDevice makes a device node; the systems disagree on the type of a device number.
func nullDevice[N int | uint64](mknod func(path string, mode uint32, device N) error) func(path string) error {
	return func(path string) error { return mknod(path, unix.S_IFCHR|0o666, N(unix.Mkdev(1, 3))) }
}

// ScriptCondition serves [root] and [tool:NAME]. Where nothing may be skipped, a condition that does not hold fails.
func ScriptCondition(cond string) (bool, error) {
	holds := false
	switch name, isTool := strings.CutPrefix(cond, "tool:"); {
	case cond == "root":
		holds = os.Geteuid() == 0
	case isTool:
		_, err := exec.LookPath(name)
		holds = err == nil
	default:
		return false, fmt.Errorf("unknown condition %q", cond)
	}
	if !holds && os.Getenv(StrictEnv) != "" {
		return false, fmt.Errorf("[%s] does not hold, and nothing may be skipped here", cond)
	}
	return holds, nil
}

// exits N COMMAND [ARG…]: the command must end with status N, or with signal N - 128, as a shell sees it.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N COMMAND [ARG…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = StatusOf(exit.ProcessState)
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d\nstdout: %s\nstderr: %s", got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// StatusOf is the status of a process that has ended as a shell shows it: 128 + N after signal N.
func StatusOf(ended *os.ProcessState) int {
	if ws := ended.Sys().(syscall.WaitStatus); ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ended.ExitCode()
}

// jq [-s] EXPR FILE: EXPR must give something other than false and null for each JSON value in FILE, of which there is at
// least one (with -s: for the array of all). With "-o NAME" before EXPR the results go to the environment variable NAME instead.
func jq(ts *testscript.TestScript, neg bool, args []string) {
	slurp, into := false, ""
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		switch args[0] {
		case "-s":
			slurp = true
		case "-o":
			into, args = args[1], args[1:]
		}
		args = args[1:]
	}
	if len(args) != 2 {
		ts.Fatalf("usage: jq [-s] [-o NAME] EXPR FILE")
	}
	inputs := jsonValues(ts, ts.ReadFile(args[1]))
	if slurp {
		inputs = []any{inputs}
	}
	if len(inputs) == 0 {
		ts.Fatalf("no JSON in %s", args[1])
	}
	results := evaluate(ts, args[0], inputs)
	if into != "" {
		texts := make([]string, len(results))
		for i, r := range results {
			texts[i] = fmt.Sprint(r)
		}
		ts.Setenv(into, strings.Join(texts, "\n"))
		return
	}
	holds := !slices.ContainsFunc(results, func(r any) bool { return r == nil || r == false })
	if holds == neg {
		ts.Fatalf("jq %s: %v\non: %s", args[0], results, ts.ReadFile(args[1]))
	}
}

func jsonValues(ts *testscript.TestScript, text string) []any {
	var values []any
	dec := json.NewDecoder(strings.NewReader(text))
	for dec.More() {
		var v any
		if err := dec.Decode(&v); err != nil {
			ts.Fatalf("not JSON: %v\n%s", err, text)
		}
		values = append(values, v)
	}
	return values
}

func evaluate(ts *testscript.TestScript, expr string, inputs []any) (results []any) {
	query, err := gojq.Parse(expr)
	ts.Check(err)
	for _, in := range inputs {
		iter := query.Run(in)
		for v, ok := iter.Next(); ok; v, ok = iter.Next() {
			if err, is := v.(error); is {
				ts.Fatalf("jq %s: %v", expr, err)
			}
			results = append(results, v)
		}
	}
	return results
}

// onPath makes a command that does something to each path.
func onPath(f func(path string) error) command {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) == 0 {
			ts.Fatalf("usage: COMMAND PATH…")
		}
		for _, path := range args {
			ts.Check(f(ts.MkAbs(path)))
		}
	}
}

func mksocket(path string) error {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false)
	return l.Close()
}

// mksparse SIZE PATH: a file of that many bytes with nothing in it.
func mksparse(ts *testscript.TestScript, neg bool, args []string) {
	size, err := strconv.ParseInt(args[0], 10, 64)
	ts.Check(err)
	f, err := os.Create(ts.MkAbs(args[1]))
	ts.Check(err)
	ts.Check(f.Truncate(size))
	ts.Check(f.Close())
}

// mknul SIZE PATH: a file of NUL bytes.
func mknul(ts *testscript.TestScript, neg bool, args []string) {
	size, err := strconv.Atoi(args[0])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), bytes.Repeat([]byte{0}, size), 0o644))
}

// snapshot DIR: remember everything in DIR for unchanged.
func snapshot(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: snapshot DIR")
	}
	path := ts.MkAbs(args[0])
	ts.Setenv(snapshotVariable(path), listing(ts, path))
}

// unchanged DIR: names, types, modes, owners, times and bytes are as they were at the snapshot.
func unchanged(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: unchanged DIR")
	}
	path := ts.MkAbs(args[0])
	before, now := ts.Getenv(snapshotVariable(path)), listing(ts, path)
	if before == "" {
		ts.Fatalf("there is no snapshot of %s", args[0])
	}
	if (before == now) == neg {
		ts.Fatalf("before:\n%s\nnow:\n%s", before, now)
	}
}

func snapshotVariable(path string) string {
	return fmt.Sprintf("SNAPSHOT_%x", sha256.Sum256([]byte(path)))
}

func listing(ts *testscript.TestScript, root string) string {
	text, err := Listing(root)
	ts.Check(err)
	return text
}

// Listing describes everything below root, a line for each: name, type, mode, inode, owner, size, times and bytes. Two equal
// listings mean that nothing was changed, replaced, added or removed.
func Listing(root string) (string, error) {
	entries := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		entries[path], err = describe(path, d)
		return err
	})
	var b strings.Builder
	b.WriteString("everything:\n")
	for _, path := range slices.Sorted(maps.Keys(entries)) {
		fmt.Fprintf(&b, "%q %s\n", path, entries[path])
	}
	return b.String(), err
}

// describe is one line of a listing. Only regular files are opened; of one larger than any state file the size serves.
func describe(path string, d fs.DirEntry) (string, error) {
	info, err := d.Info()
	if err != nil {
		return "", err
	}
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return "", err
	}
	line := fmt.Sprintf("%s ino %d uid %d gid %d", info.Mode(), st.Ino, st.Uid, st.Gid)
	switch {
	case info.IsDir():
		return line, nil
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		return line + " -> " + target, err
	case info.Mode().IsRegular() && info.Size() < 16<<20:
		b, err := readAtOnce(path)
		if err != nil && !errors.Is(err, unix.EAGAIN) { // a file under a kernel lease is not read
			return "", err
		}
		line += fmt.Sprintf(" %x", sha256.Sum256(b))
	}
	return line + fmt.Sprintf(" %d bytes %s", info.Size(), info.ModTime().UTC().Format(time.RFC3339Nano)), nil
}

// readAtOnce reads a file whose open does not have to wait.
func readAtOnce(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// waitfile PATH…: wait until each exists.
func waitfile(ts *testscript.TestScript, neg bool, args []string) {
	for _, path := range args {
		deadline := time.Now().Add(30 * time.Second)
		for {
			if _, err := os.Lstat(ts.MkAbs(path)); err == nil {
				break
			}
			if time.Now().After(deadline) {
				ts.Fatalf("%s did not appear", path)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}
