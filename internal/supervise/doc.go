// Package supervise is the child under a wrapper: its start, its signals, its end and its descendants.
//
// # Guarantees
//
//   - The program is executed directly, with standard input, output and error as they are, and no other descriptor.
//   - It stays in the wrapper's process group, so that pipelines, pagers, Ctrl-C, Ctrl-Z, fg and window sizes work as
//     without the wrapper. Each signal reaches it once.
//   - When the wrapper is killed by SIGKILL the child is killed too (Linux and FreeBSD).
//   - End ends the child and every descendant: SIGTERM to the child, half the grace later SIGTERM to all that remain,
//     then SIGKILL, and reaping until none is left (Linux: the wrapper is a child subreaper, so that daemonised ones
//     count). What was below the wrapper before the command, as the jobs of a shell that has executed the wrapper in its
//     own place, is not the command's: it is neither signalled nor counted.
//   - An ordinary exit is the process's, never a pipe's: a descendant that keeps standard output open delays nothing.
//
// A process whose pid has to be known, or recorded, before the command runs is started with StartWaiting: the wrapper's own binary
// waits in its place and becomes the command when it is let go.
//
// # Not guaranteed
//
//   - After a SIGKILL of the wrapper, grandchildren live on. A set-user-ID program loses the parent-death signal. What a
//     daemon starts on the child's behalf (docker, tmux, systemd-run) is no descendant, nor is an orphan in another pid
//     namespace before its init ends.
//   - A stopped wrapper acts on nothing.
//   - What such a job of the shell's starts later, and leaves behind when it ends, falls to the wrapper like the command's.
//   - What somebody sends to the whole group in the background, as a shell does at 'kill %1', reaches the child directly and
//     through the wrapper, which cannot tell it from a signal of its own. Only a hang-up is known for one.
//   - On other systems than Linux, descendants are neither found nor counted: End reaches the child.
//   - A signal that was ignored at the start stays ignored for SIGINT and SIGHUP, which the Go runtime tells; SIGQUIT goes
//     with SIGINT, as shells set them together. For every other signal the runtime has put its own handler in the place of
//     what it found before any code of this program runs, and tells nobody; so the command has the default action for
//     them, SIGPIPE included, as a command of a shell has.
package supervise
