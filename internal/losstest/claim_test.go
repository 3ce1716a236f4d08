//go:build linux

package losstest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// holdClaim is another participant that does not come out of the claim: it creates the file, locks it, writes some content
// and waits until its standard input ends. Argument: the claim's path.
func holdClaim() error {
	fd, err := unix.Open(os.Args[1], unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return err
	}
	if _, err := unix.Write(fd, []byte("a token of another program\n")); err != nil {
		return err
	}
	fmt.Println("held")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return os.Remove(os.Args[1])
}

// holdTheClaim makes another process hold the claim of the scene's lease, until leave is called.
func (s *scene) holdTheClaim() (leave func()) {
	s.Helper()
	cmd := exec.Command("holdclaim", s.lock+".mutex")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	s.must(err)
	out, err := cmd.StdoutPipe()
	s.must(err)
	s.must(cmd.Start())
	left := false
	leave = func() {
		if !left {
			left = true
			in.Close()
			if err := cmd.Wait(); err != nil {
				s.Errorf("the claim's holder: %v", err)
			}
		}
	}
	s.Cleanup(leave)
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		s.Fatal("the claim's holder did not begin:", err)
	}
	return leave
}

// TestHeldClaimIsNoDelay: a renewal that waits behind a claim delays nothing. Somebody else who waits as well gets the
// lease when it has expired, and nothing of the command runs then, although it ignores SIGTERM.
func TestHeldClaimIsNoDelay(t *testing.T) {
	s := newScene(t)
	s.run("stamp", "child", "deaf")
	leave := s.holdTheClaim()
	other := s.contend()
	s.await("loss", func() bool { _, told := s.event("lost"); return told })
	s.sleepUntil(1)
	leave()
	other.wins()
	s.lost("renewal-overdue")
	if e, _ := s.event("child-exited"); e.Status == nil || *e.Status != statusKill {
		t.Errorf("the child ended with %v", e.Status)
	}
}

// TestClaimFreedAfterTheLoss: a renewal that was waiting when the lease was given up is given up with it. It does not
// renew for nobody and make others wait for a whole duration more, and leaves no claim.
func TestClaimFreedAfterTheLoss(t *testing.T) {
	s := newScene(t)
	s.run("stamp", "child", "deaf")
	leave := s.holdTheClaim()
	expiry := s.sight.expiry()
	s.await("loss", func() bool { _, told := s.event("lost"); return told })
	time.Sleep(100 * time.Millisecond)
	leave() // the command is still being ended
	s.lost("renewal-overdue")
	if now := s.sight.expiry(); !now.Equal(expiry) {
		t.Errorf("the lease was renewed to %s after it was lost", now)
	}
	if there := lookedAt(s.lock + ".mutex"); there != "nothing" {
		t.Errorf("a claim is left: %s", there)
	}
}

// TestClaimIsNoFile: a named pipe in the claim's place hangs nothing. It is retried like any fault, and named in the end.
func TestClaimIsNoFile(t *testing.T) {
	s := newScene(t)
	s.run("stamp", "child")
	s.must(unix.Mkfifo(s.lock+".mutex", 0o644))
	s.lost("renewal-overdue")
	s.says("named pipe")
	failed := 0
	for _, e := range s.eventsIn(s.events) {
		if e.Event == "renew-failed" {
			failed++
			if e.Code != "not-regular" || e.LeftMs <= 0 {
				t.Errorf("the event is %+v", e)
			}
		}
	}
	if failed < 2 {
		t.Errorf("the renewal was tried %d times", failed)
	}
	if there := lookedAt(s.lock + ".mutex"); there[0] != 'p' {
		t.Errorf("the pipe became %s", there)
	}
}
