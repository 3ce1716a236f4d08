package clikit

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

// printed runs f with standard output going to a pipe, and returns that pipe's other end and what ends it.
func printed(t *testing.T, f func(b *buffer)) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	saved, err := unix.Dup(1)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Dup3(int(w.Fd()), 1, 0); err != nil {
		t.Fatal(err)
	}
	w.Close()
	t.Cleanup(func() { _ = unix.Dup3(saved, 1, 0); unix.Close(saved); r.Close() })
	f(&buffer{})
	return r
}

func TestWhatNothingFollowsIsWrittenAMomentLater(t *testing.T) {
	r := printed(t, func(b *buffer) {
		for _, text := range []string{"one\n", "two\n"} {
			if err := b.write(text); err != nil {
				t.Fatal(err)
			}
		}
	})
	got := make([]byte, 8)
	testkit.Within(t, 10*time.Second, func() {
		for n := 0; n < len(got); {
			m, err := r.Read(got[n:])
			if err != nil {
				t.Error(err)
				return
			}
			n += m
		}
	})
	if string(got) != "one\ntwo\n" {
		t.Errorf("%q", got)
	}
}

func TestABufferSaysThatNobodyReads(t *testing.T) {
	var failed error
	printed(t, func(b *buffer) {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			testkit.Need(t, false, "/dev/full")
		}
		defer full.Close()
		if err := unix.Dup3(int(full.Fd()), 1, 0); err != nil {
			t.Fatal(err)
		}
		_ = b.write(strings.Repeat("x", keepBytes))
		failed = b.flush()
	})
	if failed != unix.ENOSPC {
		t.Errorf("%v", failed)
	}
}
