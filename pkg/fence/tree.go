package fence

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"holdfast/pkg/claim"
	"holdfast/pkg/procid"
	"holdfast/pkg/regfile"
)

// Tree shows each directory at and below root that has an owner claim, in the order of their paths; symlinks are not
// followed. failed is told of what could not be looked into. Nothing is written. The error is a *regfile.Error about root,
// or that of each, which ends the walk.
func Tree(root string, opts Options, each func(*Status) error, failed func(path string, err error)) error {
	if opts.Judge == nil {
		opts.Judge = procid.NewObserver().Judge // one look at this process's own place serves every verdict
	}
	f, err := Open(root, false, opts)
	if err != nil {
		return err
	}
	w := walk{opts: f.opts, each: each, failed: failed}
	return w.directory(f.dir, f.resource, nil)
}

// walk is one passage through a tree.
type walk struct {
	opts   Options
	each   func(*Status) error
	failed func(path string, err error)
}

// directory shows one directory, if it is a session's, and what is below it. It closes dir. siblings are the names beside
// it; nil when they are not known.
func (w *walk) directory(dir *regfile.Dir, path string, siblings map[string]bool) error {
	defer dir.Close()
	entries, err := dir.Entries()
	if err != nil {
		w.failed(path, err)
		return nil
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	if has(entries, ClaimName) {
		if err := w.session(dir, path, entries, siblings); err != nil {
			return err
		}
	}
	return w.below(dir, path, entries)
}

func has(entries []fs.DirEntry, name string) bool {
	_, found := slices.BinarySearchFunc(entries, name, func(e fs.DirEntry, name string) int { return strings.Compare(e.Name(), name) })
	return found
}

func (w *walk) below(dir *regfile.Dir, path string, entries []fs.DirEntry) error {
	var names map[string]bool
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if names == nil {
			names = map[string]bool{}
			for _, e := range entries {
				names[e.Name()] = true
			}
		}
		sub, err := dir.OpenDir(e.Name())
		if regfile.IsAbsent(err) {
			continue // gone meanwhile
		}
		if err != nil {
			w.failed(filepath.Join(path, e.Name()), err)
			continue
		}
		if err := w.directory(sub, filepath.Join(path, e.Name()), names); err != nil {
			return err
		}
	}
	return nil
}

// session shows one session directory. The listings answer what need not be asked of the kernel.
func (w *walk) session(dir *regfile.Dir, path string, entries []fs.DirEntry, siblings map[string]bool) error {
	f := &Fence{dir: dir, selected: path, resource: path, opts: w.opts}
	s := &Status{Resource: path, Tx: claim.Inspection{State: claim.Absent}, Hold: Hold{State: HoldAbsent}}
	o, err := f.read()
	if s.Claim, s.Err = o.Claim, err; s.Claim == nil && s.Err == nil {
		return nil // gone meanwhile
	}
	if siblings == nil || siblings[filepath.Base(path)+".lock"] {
		if s.Native, err = nativeLeases(path, path); err != nil {
			w.failed(path, err)
		}
	}
	if has(entries, TxName) {
		f.inspectTx(s)
	}
	if has(entries, HoldName) {
		s.Hold, s.HoldErr = f.hold()
	}
	if s.Claim != nil {
		f.settleStatus(s)
	}
	s.Hold.find(&s.Verdict.Reason)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tempPrefix) {
			s.Temps = append(s.Temps, e.Name())
		}
	}
	return w.each(s)
}
