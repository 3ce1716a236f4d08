package registry

import (
	"path/filepath"

	"holdfast/pkg/regfile"
)

// Does is what a step does with its file.
type Does string

// What a step does.
const (
	Creates  Does = "create"
	Replaces Does = "replace" // or creates, where the file is the registry's first
	Removes  Does = "remove"
)

// Step is one write of an operation. Before it everything that the operation knows is looked at again, and after it the file
// is what the step made of it.
type Step struct {
	Name   string
	InRoot bool // the file is in the root's directory, else in the registry's
	File   string
	Does   Does
	Absent bool // only where the file is absent
	Commit bool // from this step on the operation is rolled forward, before it back
}

// AcquireOrder is the order of an acquire.
var AcquireOrder = []Step{
	{Name: "registry-format", File: formatFile, Does: Creates, Absent: true},
	{Name: "row", File: rootsName, Does: Replaces},
	{Name: "config", InRoot: true, File: configName, Does: Creates, Absent: true},
	{Name: "format", InRoot: true, File: formatFile, Does: Creates, Absent: true},
	{Name: "checkout-lock", InRoot: true, File: checkoutName, Does: Creates},
	{Name: "owner-lock", InRoot: true, File: ownerLockFile, Does: Creates},
	{Name: "capability", InRoot: true, File: capabilityName, Does: Creates},
	{Name: "registration", InRoot: true, File: registrationFile, Does: Replaces, Commit: true},
}

// ReleaseOrder is the order of a release, and of a recovery. Older writers stay out until the very end.
var ReleaseOrder = []Step{
	{Name: "stopped", InRoot: true, File: registrationFile, Does: Replaces, Commit: true},
	{Name: "row", File: rootsName, Does: Replaces},
	{Name: "capability", InRoot: true, File: capabilityName, Does: Removes},
	{Name: "owner-lock", InRoot: true, File: ownerLockFile, Does: Removes},
	{Name: "checkout-lock", InRoot: true, File: checkoutName, Does: Removes},
}

// operation carries out an order on one root.
type operation struct {
	*locked
	registry *regfile.Dir
	root     *regfile.Dir
	known    map[string]*Snapshot // by key: what every file is; nil is absent
	content  map[string][]byte    // by step: what is written
	before   func() error         // what else must hold before each step; nil for nothing
}

// key names a step's file among all that an operation knows.
func (s Step) key() string {
	if s.InRoot {
		return filepath.Join(rootsDir, s.File)
	}
	return filepath.Join(registryDir, s.File)
}

func (o *operation) dir(s Step) *regfile.Dir {
	if s.InRoot {
		return o.root
	}
	return o.registry
}

// run carries out the steps.
func (o *operation) run(order []Step) error {
	for _, s := range order {
		if s.Absent && o.known[s.key()] != nil {
			continue
		}
		if err := o.precondition(); err != nil {
			return err
		}
		if err := o.step(s); err != nil {
			return err
		}
		o.iv.at(s.Name)
	}
	return nil
}

func (o *operation) step(s Step) error {
	d, was, content := o.dir(s), o.known[s.key()], o.content[s.Name]
	if s.Does == Removes {
		if err := o.remove(d, s.File, was); err != nil {
			return err
		}
		delete(o.known, s.key())
		return nil
	}
	var now *Snapshot
	var err error
	if was == nil {
		now, err = o.create(d, s.File, content)
	} else {
		now, err = o.replace(d, s.File, was, content)
	}
	if err != nil {
		return err
	}
	if s.File != capabilityName && now.Identity != identityOf(content) {
		return conflict(d.Join(s.File), "is not what was written to it")
	}
	now.Bytes = nil
	o.known[s.key()] = now
	return nil
}

// precondition refuses when the lock is gone or anything moved that this operation knows.
func (o *operation) precondition() error {
	if !o.held.Holds() {
		return o.lost("")
	}
	for key, was := range o.known {
		if err := o.unmoved(key, was); err != nil {
			return err
		}
	}
	if o.before != nil {
		return o.before()
	}
	return nil
}

// unmoved compares stamps: every change of a file moves one.
func (o *operation) unmoved(key string, was *Snapshot) error {
	d := o.registry
	if filepath.Dir(key) == rootsDir {
		d = o.root
	}
	st, err := d.Lstat(filepath.Base(key))
	switch {
	case regfile.IsAbsent(err) && was == nil:
		return nil
	case regfile.IsAbsent(err):
		return conflict(d.Join(filepath.Base(key)), "is gone")
	case err != nil:
		return err
	case was == nil:
		return conflict(d.Join(filepath.Base(key)), "has appeared")
	case stampOf(st) != was.Stamp:
		return conflict(d.Join(filepath.Base(key)), "changed meanwhile")
	}
	return nil
}
