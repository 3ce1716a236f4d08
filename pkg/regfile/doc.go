// Package regfile reads state files, and only regular files.
//
// A name in a state directory may hold anything by the time it is looked at: a FIFO that would block the reader for
// ever, a device whose opening acts, a symlink to somebody else's file. Package regfile establishes the type before it
// opens anything, reads a bounded and stable snapshot, and otherwise returns an error that names the kind.
//
// # Guarantees
//
//   - A Dir is opened once; every name is reached relative to that descriptor. Swapping a parent directory under a
//     running command redirects nothing. Symlinks in the path of the directory are followed when it is opened, the
//     final component of a name never is.
//   - On Linux the entry is first taken as an O_PATH handle, which opens no driver and gives a FIFO no reader; only a
//     regular file is then opened, through that handle, so that nothing can be swapped in between. Where /proc is not
//     usable, and on other systems, lstat, a non-blocking open and fstat must agree on device and inode.
//   - A read takes at most the limit plus one byte from the file.
//   - A Snapshot is whole: size, mtime and inode were the same before and after.
//   - Nothing here writes, creates or removes.
//
// # Not guaranteed
//
//   - On systems other than Linux a FIFO that is swapped in between lstat and open is opened for a moment, without
//     blocking, and refused.
//   - A filesystem that does not answer blocks its caller.
//   - A large write in place that is under way during the whole read can be seen half done: no participant writes in place.
package regfile
