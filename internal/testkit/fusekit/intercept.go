//go:build linux

package fusekit

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// interceptor asks the hook before it passes an operation on. Operations name files by number, so it remembers which
// name each number was last found under.
type interceptor struct {
	fuse.RawFileSystem
	opts Options

	mu    sync.Mutex
	names map[uint64]string
	paths map[uint64]string // of directories, below the backing one; kept where names are folded
}

func newInterceptor(below fuse.RawFileSystem, opts Options, backing string) *interceptor {
	if opts.Hook == nil {
		opts.Hook = func(Op, string) syscall.Errno { return 0 }
	}
	return &interceptor{RawFileSystem: below, opts: opts, names: map[uint64]string{}, paths: map[uint64]string{fuse.FUSE_ROOT_ID: backing}}
}

func (i *interceptor) ask(op Op, name string) fuse.Status { return fuse.Status(i.opts.Hook(op, name)) }

func (i *interceptor) askNode(op Op, node uint64) fuse.Status {
	i.mu.Lock()
	name := i.names[node]
	i.mu.Unlock()
	return i.ask(op, name)
}

func (i *interceptor) remember(status fuse.Status, node uint64, name string) fuse.Status {
	if status == fuse.OK && node != 0 {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.names[node] = name
	}
	return status
}

func (i *interceptor) renamed(from, to string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for node, name := range i.names {
		if name == from {
			i.names[node] = to
		}
	}
}

func (i *interceptor) Lookup(cancel <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	if s := i.ask(Lookup, name); s != fuse.OK {
		return s
	}
	if i.opts.Fold == nil {
		return i.remember(i.RawFileSystem.Lookup(cancel, h, name, out), out.NodeId, name)
	}
	i.mu.Lock()
	dir := i.paths[h.NodeId]
	i.mu.Unlock()
	name = i.folded(dir, name)
	status := i.remember(i.RawFileSystem.Lookup(cancel, h, name, out), out.NodeId, name)
	if status == fuse.OK {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.paths[out.NodeId] = filepath.Join(dir, name)
	}
	return status
}

// folded is the name in a directory that a name folds to; the name itself when there is none.
func (i *interceptor) folded(dir, name string) string {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if i.opts.Fold(e.Name()) == i.opts.Fold(name) {
			return e.Name()
		}
	}
	return name
}

func (i *interceptor) GetAttr(cancel <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	if s := i.askNode(GetAttr, in.NodeId); s != fuse.OK {
		return s
	}
	return i.RawFileSystem.GetAttr(cancel, in, out)
}

func (i *interceptor) SetAttr(cancel <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	if s := i.askNode(SetAttr, in.NodeId); s != fuse.OK {
		return s
	}
	return i.RawFileSystem.SetAttr(cancel, in, out)
}

func (i *interceptor) Create(cancel <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	if s := i.ask(Create, name); s != fuse.OK {
		return s
	}
	return i.remember(i.RawFileSystem.Create(cancel, in, name, out), out.NodeId, name)
}

func (i *interceptor) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if s := i.askNode(Open, in.NodeId); s != fuse.OK {
		return s
	}
	return i.RawFileSystem.Open(cancel, in, out)
}

func (i *interceptor) Read(cancel <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	if s := i.askNode(Read, in.NodeId); s != fuse.OK {
		return nil, s
	}
	return i.RawFileSystem.Read(cancel, in, buf)
}

// Write is called as Writev first.
func (i *interceptor) Writev(cancel <-chan struct{}, in *fuse.WriteIn, data [][]byte) (uint32, fuse.Status) {
	if s := i.askNode(Write, in.NodeId); s != fuse.OK {
		return 0, s
	}
	return i.RawFileSystem.Writev(cancel, in, data)
}

func (i *interceptor) Fsync(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	if s := i.askNode(Fsync, in.NodeId); s != fuse.OK {
		return s
	}
	return i.RawFileSystem.Fsync(cancel, in)
}

func (i *interceptor) FsyncDir(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	if s := i.askNode(FsyncDir, in.NodeId); s != fuse.OK {
		return s
	}
	return i.RawFileSystem.FsyncDir(cancel, in)
}

func (i *interceptor) Rename(cancel <-chan struct{}, in *fuse.RenameIn, from, to string) fuse.Status {
	op := Rename
	if in.Flags != 0 {
		op = RenameFlags
	}
	if s := i.ask(op, to); s != fuse.OK {
		return s
	}
	if op == RenameFlags && i.opts.RenameFlags != 0 {
		return fuse.Status(i.opts.RenameFlags)
	}
	s := i.RawFileSystem.Rename(cancel, in, from, to)
	if s == fuse.OK {
		i.renamed(from, to)
	}
	return s
}

func (i *interceptor) Link(cancel <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	if s := i.ask(Link, name); s != fuse.OK {
		return s
	}
	if i.opts.Link != 0 {
		return fuse.Status(i.opts.Link)
	}
	return i.remember(i.RawFileSystem.Link(cancel, in, name, out), out.NodeId, name)
}

func (i *interceptor) Unlink(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	if s := i.ask(Unlink, name); s != fuse.OK {
		return s
	}
	return i.RawFileSystem.Unlink(cancel, h, name)
}

func (i *interceptor) SetLk(cancel <-chan struct{}, in *fuse.LkIn) fuse.Status {
	if s := i.askNode(Lock, in.NodeId); s != fuse.OK {
		return s
	}
	if i.opts.Lock != 0 {
		return fuse.Status(i.opts.Lock)
	}
	return i.RawFileSystem.SetLk(cancel, in)
}
