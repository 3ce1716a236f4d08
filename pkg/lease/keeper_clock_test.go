package lease

import (
	"context"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// Time that passes inside an acquire or a renewal is the holder's loss: the file counts from when the expiry was computed,
// the keeper from before the call.
func TestValidityCountsFromBeforeTheMutation(t *testing.T) {
	const slow = 8 * time.Second
	for _, step := range []string{"observed", "claimed", "compared", "applied", "confirmed"} {
		t.Run("acquire/"+step, func(t *testing.T) {
			slowly := func(k *kept) { k.meanwhile(step, func() { time.Sleep(slow) }) }
			keepingAfter(t, slowly, 60*time.Second, 10*time.Second, func(k *kept) {
				if left := k.keeper.Left(); left != 60*time.Second-slow {
					t.Errorf("%s are left", left)
				}
				defer k.jam()()
				if at := k.lostBy(time.Minute, CauseOverdue); at != 50*time.Second {
					t.Errorf("lost %s after the acquire began, want 50s", at)
				}
			})
		})
		t.Run("renew/"+step, func(t *testing.T) {
			keeping(t, 60*time.Second, 10*time.Second, func(k *kept) {
				k.meanwhile(step, func() { time.Sleep(slow) })
				k.until(30*time.Second + slow + 10*time.Millisecond)
				if left := k.keeper.Left(); left != 60*time.Second-slow-10*time.Millisecond {
					t.Errorf("%s are left", left)
				}
				if e := k.named("renewed"); len(e) != 1 || e[0].Left != 60*time.Second-slow {
					t.Errorf("the event is %+v", e)
				}
				defer k.jam()()
				if at := k.lostBy(2*time.Minute, CauseOverdue); at != 80*time.Second {
					t.Errorf("lost after %s; the renewal began at 30s", at)
				}
			})
		})
	}
}

// A wall clock that goes forward ends the lease for everybody else, so it ends it here.
func TestWallClockForward(t *testing.T) {
	for _, c := range []struct {
		step  time.Duration // at 10 s of a lease of 60 s with a grace of 10 s
		cause string        // "": renewed
	}{
		{19 * time.Second, ""}, // not half of it yet
		{21 * time.Second, ""}, // half of it is over
		{38 * time.Second, ""},
		{41 * time.Second, CauseOverdue}, // 9 s are left
		{48 * time.Second, CauseOverdue}, // and a tick passes
		{51 * time.Second, CodeExpired},
		{time.Hour, CodeExpired},
		{20 * 365 * 24 * time.Hour, CodeExpired},
	} {
		t.Run(c.step.String(), func(t *testing.T) {
			keeping(t, 60*time.Second, 10*time.Second, func(k *kept) {
				k.until(10 * time.Second)
				k.stepWall(c.step)
				if c.cause != "" {
					k.lostBy(11*time.Second+1, c.cause)
					k.onlyLoss()
				} else {
					k.until(30*time.Second + 1)
					k.notLost()
					if len(k.named("renewed")) == 0 {
						t.Error("not renewed")
					}
				}
				jumped(t, k, c.step, time.Second)
			})
		})
	}
}

// jumped fails unless one jump was told, of about so much, after about such a gap.
func jumped(t *testing.T, k *kept, jump, gap time.Duration) {
	t.Helper()
	told := k.named("clock-jump")
	if len(told) != 1 {
		t.Fatalf("%d jumps were told: %+v", len(told), told)
	}
	near := func(a, b time.Duration) bool { return (a - b).Abs() <= time.Second }
	if e := told[0]; !near(e.Jump, jump) || !near(e.Gap, gap) {
		t.Errorf("a jump of %s and a gap of %s were told, want about %s and %s", e.Jump, e.Gap, jump, gap)
	}
}

// A wall clock that goes back makes the lease last longer for everybody else; here the boot clock still ends it.
func TestWallClockBackward(t *testing.T) {
	for _, step := range []time.Duration{-5 * time.Second, -time.Hour, -5 * 365 * 24 * time.Hour} {
		t.Run("no renewal/"+step.String(), func(t *testing.T) {
			keeping(t, 60*time.Second, 10*time.Second, func(k *kept) {
				defer k.jam()()
				k.until(10 * time.Second)
				k.stepWall(step)
				if at := k.lostBy(time.Minute, CauseOverdue); at != 50*time.Second {
					t.Errorf("lost after %s, want 50s", at)
				}
				jumped(t, k, step, time.Second)
			})
		})
		t.Run("renewed/"+step.String(), func(t *testing.T) {
			keeping(t, 60*time.Second, 10*time.Second, func(k *kept) {
				k.until(10 * time.Second)
				k.stepWall(step)
				last := k.file().ExpiresAt
				k.until(5 * time.Minute)
				k.notLost()
				renewed := k.named("renewed")
				if len(renewed) < 8 {
					t.Fatalf("%d renewals in 5 minutes", len(renewed))
				}
				for i, e := range renewed {
					if !e.Lease.ExpiresAt.After(last) {
						t.Errorf("renewal %d: the expiry %s does not follow %s", i, e.Lease.ExpiresAt, last)
					}
					last = e.Lease.ExpiresAt
				}
			})
		})
	}
}

// A clock that goes forward and comes back within the lease does no harm.
func TestWallClockThereAndBack(t *testing.T) {
	keeping(t, 60*time.Second, 10*time.Second, func(k *kept) {
		k.until(5 * time.Second)
		k.stepWall(20 * time.Second)
		k.until(8 * time.Second)
		k.stepWall(-20 * time.Second)
		k.until(5 * time.Minute)
		k.notLost()
		if n := len(k.named("clock-jump")); n != 2 {
			t.Errorf("%d jumps were told", n)
		}
	})
}

// A machine that was suspended notices within a tick of running again (case B14: late is not lost).
func TestSuspended(t *testing.T) {
	for _, c := range []struct {
		asleep time.Duration // at 10.5 s of a lease of 60 s with a grace of 10 s
		cause  string        // "": renewed
	}{
		{5 * time.Second, ""},
		{25 * time.Second, ""}, // late for the renewal
		{38 * time.Second, ""}, // and later
		{40 * time.Second, CauseOverdue},
		{50 * time.Second, CodeExpired},
		{24 * time.Hour, CodeExpired},
	} {
		t.Run(c.asleep.String(), func(t *testing.T) {
			keeping(t, 60*time.Second, 10*time.Second, func(k *kept) {
				k.until(10*time.Second + 500*time.Millisecond)
				k.suspend(c.asleep)
				if c.cause != "" {
					if at := k.lostBy(time.Minute, c.cause); at > 11*time.Second {
						t.Errorf("noticed %s after the suspend", at-10500*time.Millisecond)
					}
				} else {
					k.until(31 * time.Second)
					k.notLost()
					renewed := k.named("renewed")
					if len(renewed) == 0 {
						t.Fatal("not renewed")
					}
					if late := c.asleep > 20*time.Second; late && renewed[0].at > 11500*time.Millisecond {
						t.Errorf("renewed %s after a suspend that took half of the lease", renewed[0].at-10500*time.Millisecond)
					}
				}
				jumped(t, k, 0, c.asleep+time.Second)
			})
		})
	}
}

// The clocks are looked at, not the timers: only the boot clock says that a stopped process was stopped when the wall clock
// was set back meanwhile.
func TestSuspendedWithTheWallClockSetBack(t *testing.T) {
	keeping(t, 60*time.Second, 10*time.Second, func(k *kept) {
		k.until(10 * time.Second)
		k.suspend(time.Hour)
		k.stepWall(-time.Hour)
		k.lostBy(11*time.Second+1, CodeExpired)
		jumped(t, k, -time.Hour, time.Hour)
	})
}

// Check decides at once, before it returns: a process that was just continued must not continue its child first.
func TestCheckAfterAStop(t *testing.T) {
	for _, c := range []struct {
		name   string
		asleep time.Duration
		do     func(k *kept)
		cause  string
	}{
		{"ours, early", 10 * time.Second, nil, ""},
		{"ours, late", 39 * time.Second, nil, ""},
		{"ours, in its grace", 40 * time.Second, nil, CauseOverdue},
		{"expired", 50 * time.Second, nil, CodeExpired},
		{"taken over", 51 * time.Second, func(k *kept) { takeOverNow(k) }, CodeExpired},
		{"replaced early", 10 * time.Second, func(k *kept) { k.edit(func(l *Lease) { l.HolderID = "another" }) }, CodeNotHolder},
		{"gone", 10 * time.Second, func(k *kept) { k.must(os.Remove(k.path)) }, CodeAbsent},
		{"corrupt", 10 * time.Second, func(k *kept) { k.put([]byte("{")) }, CodeCorrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			keeping(t, 60*time.Second, 10*time.Second, func(k *kept) {
				k.until(10 * time.Second)
				k.suspend(c.asleep)
				if c.do != nil {
					c.do(k)
				}
				before := listed(t, k.path)
				k.keeper.Check()
				loss := k.lostYet() // no time has passed
				if told := k.named("clock-jump"); len(told) != 1 || told[0].Gap != c.asleep {
					t.Errorf("the gap was told as %+v", told)
				}
				if c.cause == "" {
					if loss != nil {
						t.Fatalf("lost: %v", loss)
					}
					synctest.Wait()
					if late := c.asleep > 20*time.Second; late != (len(k.named("renewed")) == 1) {
						t.Errorf("renewed at once: %v", k.named("renewed"))
					}
					k.until(2 * time.Minute)
					k.notLost()
					return
				}
				if loss == nil || loss.Cause != c.cause {
					t.Fatalf("the loss is %v, want %s", loss, c.cause)
				}
				synctest.Wait()
				k.onlyLoss()
				if now := listed(t, k.path); now != before {
					t.Errorf("there was\n%s\nnow there is\n%s", before, now)
				}
			})
		})
	}
}

func takeOverNow(k *kept) {
	other, err := Open(k.path, Options{Now: k.Now, Boottime: k.Boottime})
	k.must(err)
	defer other.Close()
	_, err = other.Acquire(context.Background(), AcquireRequest{TakeOver: true})
	k.must(err)
}
