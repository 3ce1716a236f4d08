package lease

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/pkg/claim"
)

// obstacle is something that makes every renewal fail although the lease can be read, and the code of the failures.
type obstacle struct {
	name string
	put  func(k *kept) (lift func())
	code string
	says string
}

var obstacles = []obstacle{
	{"the claim is a directory", (*kept).jam, "not-regular", "directory"},
	{"the claim is a named pipe", func(k *kept) func() {
		k.must(unix.Mkfifo(k.path+".mutex", 0o644))
		return func() { k.must(os.Remove(k.path + ".mutex")) }
	}, "not-regular", "named pipe"},
	{"the claim is held", func(k *kept) func() {
		k.must(os.WriteFile(k.path+".mutex", []byte("another program's token\n"), 0o644))
		return func() { k.must(os.Remove(k.path + ".mutex")) }
	}, CodeClaimTimeout, "mutex"},
	{"the stage is a directory", func(k *kept) func() {
		k.must(os.Mkdir(k.path+".stage", 0o755))
		return func() { k.must(os.Remove(k.path + ".stage")) }
	}, "not-regular", "directory"},
	{"the journal is a named pipe", func(k *kept) func() {
		k.must(os.Rename(k.path+".journal", k.path+".away"))
		k.must(unix.Mkfifo(k.path+".journal", 0o644))
		return func() { k.must(os.Rename(k.path+".away", k.path+".journal")) }
	}, "not-regular", "named pipe"},
	{"no descriptor is free", func(k *kept) func() {
		lift := limited(k, unix.RLIMIT_NOFILE, 3) // the lease cannot be read either
		k.Cleanup(lift)
		return lift
	}, "io", "EMFILE"},
	{"files may not grow", func(k *kept) func() {
		lift := limited(k, unix.RLIMIT_FSIZE, 100) // the runtime ignores SIGXFSZ
		k.Cleanup(lift)
		return lift
	}, "io", "EFBIG"},
}

// limited puts a limit on this process until it is lifted.
func limited(k *kept, resource int, most uint64) (lift func()) {
	var was unix.Rlimit
	k.must(unix.Getrlimit(resource, &was))
	k.must(unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: was.Max}))
	return func() { k.must(unix.Setrlimit(resource, &was)) }
}

// A renewal that fails is tried again, with longer and longer pauses, until a grace is left, and only then it is a loss.
func TestFailingRenewalsAreALossWhenTheGraceBegins(t *testing.T) {
	for _, o := range obstacles {
		t.Run(o.name, func(t *testing.T) {
			keeping(t, 60*time.Second, 10*time.Second, func(k *kept) {
				k.until(31 * time.Second) // one renewal, at 30
				first := k.keeper.Lease()
				lift := o.put(k)
				defer lift()
				if at := k.lostBy(2*time.Minute, CauseOverdue); at != 80*time.Second {
					t.Errorf("lost after %s; the lease ends after 1m30s, its grace is 10s", at)
				}
				failed := k.named("renew-failed")
				checkRetries(t, failed, o)
				if len(k.named("renewed")) != 1 || k.keeper.Lease() != first {
					t.Error("renewed all the same")
				}
				k.onlyLoss()
			})
		})
	}
}

func checkRetries(t *testing.T, failed []keptEvent, o obstacle) {
	t.Helper()
	if len(failed) < 5 {
		t.Fatalf("only %d renewals failed", len(failed))
	}
	for i, e := range failed {
		if codeIn(e.Err) != o.code || !strings.Contains(e.Err.Error(), o.says) {
			t.Errorf("failed with %s: %v; want %s", codeIn(e.Err), e.Err, o.code)
		}
		if left := 90*time.Second - e.at; e.Left != left {
			t.Errorf("after %s %s are said to be left", e.at, e.Left)
		}
		if i == 0 {
			continue
		}
		if pause := e.at - failed[i-1].at; pause > lastBackoff+time.Second || pause < firstBackoff {
			t.Errorf("a pause of %s between two renewals", pause)
		}
	}
	if first := failed[0].at; first < 60*time.Second || first > 61*time.Second {
		t.Errorf("the first renewal failed after %s", first)
	}
}

// The loss names what hindered the renewals.
func TestOverdueLossNamesTheFault(t *testing.T) {
	for _, o := range obstacles {
		t.Run(o.name, func(t *testing.T) {
			keeping(t, 60*time.Second, 10*time.Second, func(k *kept) {
				defer o.put(k)()
				k.until(50*time.Second + 1)
				loss := k.lostYet()
				if loss == nil || loss.Cause != CauseOverdue || !strings.Contains(loss.Error(), o.says) {
					t.Errorf("the loss is %v", loss)
				}
			})
		})
	}
}

// case B32: what fails for a while and is healed in time is no loss. The lease is renewed soon after.
func TestFaultHealedInTimeIsNoLoss(t *testing.T) {
	for _, o := range obstacles {
		for _, outage := range []time.Duration{0, time.Second, 5 * time.Second} {
			t.Run(o.name+"/"+outage.String(), func(t *testing.T) {
				keeping(t, 30*time.Second, 7500*time.Millisecond, func(k *kept) {
					k.until(14 * time.Second)
					lift := o.put(k)
					k.until(15*time.Second + outage)
					lift()
					failed := k.named("renew-failed")
					if len(failed) == 0 {
						t.Fatal("no renewal failed")
					}
					k.until(22*time.Second + 500*time.Millisecond)
					k.notLost()
					if len(k.named("renewed")) != 1 {
						t.Fatal("not renewed before the lease was given up")
					}
					k.until(3 * time.Minute)
					k.notLost()
				})
			})
		}
	}
}

// However long it failed: what is healed three ticks before the lease is given up is healed in time.
func TestFaultHealedAtTheLastMomentIsNoLoss(t *testing.T) {
	for _, duration := range []time.Duration{4 * time.Second, 20 * time.Second, 30 * time.Second, DefaultDuration} {
		grace := DefaultGrace(duration)
		tick := min(duration/20, time.Second)
		for _, before := range []time.Duration{3 * tick, 4 * tick, 5 * tick, 7 * tick} {
			t.Run(duration.String()+"/"+before.String(), func(t *testing.T) {
				keeping(t, duration, grace, func(k *kept) {
					lift := k.jam()
					k.until(duration - grace - before)
					lift()
					k.until(duration)
					k.notLost()
				})
			})
		}
	}
}

// After a fault the next one is met with the first pause again.
func TestPausesBeginAgainAfterASuccess(t *testing.T) {
	keeping(t, DefaultDuration, 10*time.Second, func(k *kept) {
		lift := k.jam()
		k.until(10 * time.Minute)
		lift()
		k.until(11 * time.Minute)
		if len(k.named("renewed")) == 0 {
			t.Fatal("not renewed after the fault")
		}
		before := len(k.named("renew-failed"))
		if most := 5 + 150/5; before > most { // 5 s apart at last
			t.Errorf("tried %d times in 150 s", before)
		}
		defer k.jam()()
		k.until(20 * time.Minute)
		failed := k.named("renew-failed")[before:]
		if len(failed) < 3 || failed[1].at-failed[0].at > time.Second || failed[2].at-failed[1].at > time.Second {
			t.Errorf("the renewals failed at %v", failed)
		}
	})
}

// A renewal that hangs, wherever, delays nothing: the lease is lost when the grace of the last lease begins. What the
// renewal does when it comes back changes nothing any more.
func TestHangingRenewalDoesNotDelayTheLoss(t *testing.T) {
	for _, step := range []string{"observed", "claimed", "compared", "applied", "confirmed"} {
		t.Run(step, func(t *testing.T) {
			keeping(t, 60*time.Second, 10*time.Second, func(k *kept) {
				resume := make(chan struct{})
				k.meanwhile(step, func() { <-resume })
				if at := k.lostBy(2*time.Minute, CauseOverdue); at != 50*time.Second {
					t.Errorf("lost after %s, want 50s", at)
				}
				close(resume)
				k.onlyLoss()
			})
		})
	}
}

// The claim of a renewal that was given up does not stay: nobody has to clear it.
func TestHangingRenewalLeavesItsClaim(t *testing.T) {
	keeping(t, 60*time.Second, 10*time.Second, func(k *kept) {
		resume := make(chan struct{})
		k.meanwhile("claimed", func() { <-resume })
		k.lostBy(2*time.Minute, CauseOverdue)
		if in, err := k.InspectClaim(); err != nil || in.State != claim.HeldNow {
			t.Errorf("the claim is %s, %v", in.State, err)
		}
		close(resume)
		k.must(k.keeper.Stop(context.Background()))
		if in, err := k.InspectClaim(); err != nil || in.State != claim.Absent {
			t.Errorf("the claim is %s, %v", in.State, err)
		}
	})
}
