package lease

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// leave lets the process open only n more descriptors until the test ends.
func leave(t *testing.T, n uint64) (lift func()) {
	t.Helper()
	next, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0) // the lowest free one: all below it are taken
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(next)
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	lift = func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &was) }
	t.Cleanup(lift)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(next) + n, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	return lift
}

// Publishing takes one descriptor at a time and reading back two. An acquire that could not read back what it has published
// would leave a lease whose holder nobody knows: it is refused before it takes a number.
func TestAcquireThatCouldNotBeReadBackPublishesNothing(t *testing.T) {
	for n := uint64(1); n <= 2; n++ {
		r := newRig(t)
		p := r.player("alice")
		lift := func() {}
		p.meanwhile("claimed", func() { lift = leave(t, n) })
		_, err := acquire(p)
		lift()
		if !errors.Is(err, unix.EMFILE) || errCode(err) != "io" {
			t.Errorf("with %d descriptors left: %v", n, err)
		}
		r.names("")
		r.tidy()
		out, err := acquire(p)
		equal(t, "the next fence token", succeeded(t, out, err).Lease.Fence, 1)
	}
}
