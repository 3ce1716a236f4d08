package clikit

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"
)

// readerPoll is how long a look at the reader lasts before it is asked whether anybody wants to know.
const readerPoll = 1000 // ms

// WhileRead is ctx that ends also when nobody reads standard output any more, if that is a pipe or a socket. A verb that waits
// for something to print would find out only when it prints it, which may be days later.
func WhileRead(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	var out unix.Stat_t
	if unix.Fstat(1, &out) != nil {
		return ctx, cancel
	}
	if kind := uint32(out.Mode) & unix.S_IFMT; kind == unix.S_IFIFO || kind == unix.S_IFSOCK {
		go func() {
			defer cancel()
			for ctx.Err() == nil && isRead() {
			}
		}()
	}
	return ctx, cancel
}

// isRead looks at the other end of standard output for a while, or until it is closed.
func isRead() bool {
	out := []unix.PollFd{{Fd: 1}} // an error and a hang-up are told without asking
	n, err := unix.Poll(out, readerPoll)
	return n == 0 || errors.Is(err, unix.EINTR)
}
