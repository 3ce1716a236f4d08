package main

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attributes asks for the attributes of everything in a tree, and looks at none of them: two threads, each with a directory, and
// calls that the runtime does not watch.
func attributes(root string) {
	runtime.GOMAXPROCS(4)
	w := &bareWalk{stack: []string{root}}
	w.more.L = &w.mu
	var threads sync.WaitGroup
	for range 2 {
		threads.Go(w.work)
	}
	threads.Wait()
}

type bareWalk struct {
	mu    sync.Mutex
	more  sync.Cond
	stack []string
	busy  int
}

func (w *bareWalk) work() {
	buffer := make([]byte, 64<<10)
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for len(w.stack) == 0 && w.busy > 0 {
			w.more.Wait()
		}
		if len(w.stack) == 0 {
			w.more.Broadcast()
			return
		}
		dir := w.stack[len(w.stack)-1]
		w.stack = w.stack[:len(w.stack)-1]
		w.busy++
		w.mu.Unlock()
		below := directory(dir, buffer)
		w.mu.Lock()
		w.stack = append(w.stack, below...)
		w.busy--
		w.more.Broadcast()
	}
}

// directory asks for what is in a directory, and returns the directories.
func directory(dir string, buffer []byte) (below []string) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(err)
	defer unix.Close(fd)
	var st unix.Statx_t
	for {
		n, err := unix.Getdents(fd, buffer)
		must(err)
		if n == 0 {
			return below
		}
		for list := buffer[:n]; len(list) > 0; {
			size := binary.NativeEndian.Uint16(list[16:])
			kind, name := list[18], list[19:size]
			list = list[size:]
			end := bytes.IndexByte(name, 0)
			if string(name[:end]) == "." || string(name[:end]) == ".." {
				continue
			}
			_, _, errno := unix.RawSyscall6(unix.SYS_STATX, uintptr(fd), uintptr(unsafe.Pointer(&name[0])), unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS, uintptr(unsafe.Pointer(&st)), 0)
			if errno != 0 {
				must(errno)
			}
			if kind == unix.DT_DIR {
				below = append(below, filepath.Join(dir, string(name[:end])))
			}
		}
	}
}
