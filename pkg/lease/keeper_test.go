package lease

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestKeeperRenewsAtHalfLife(t *testing.T) {
	for _, c := range []struct{ duration, late time.Duration }{
		{time.Second, 50 * time.Millisecond}, // a tick is a twentieth of the duration
		{10 * time.Second, 500 * time.Millisecond},
		{60 * time.Second, time.Second}, // and a second at most
		{DefaultDuration, time.Second},
	} {
		t.Run(c.duration.String(), func(t *testing.T) {
			keeping(t, c.duration, DefaultGrace(c.duration), func(k *kept) {
				const rounds = 6
				last, expiry := time.Duration(0), k.file().ExpiresAt
				for len(k.named("renewed")) < rounds {
					time.Sleep(c.duration / 64)
					synctest.Wait()
					if now := k.file().ExpiresAt; now.Before(expiry) {
						t.Fatalf("the expiry went from %s to %s", expiry, now)
					} else {
						expiry = now
					}
					k.notLost()
				}
				expiry = time.Time{}
				for _, e := range k.named("renewed") {
					if since := e.at - last; since < c.duration/2 || since > c.duration/2+c.late {
						t.Errorf("renewed %s after the last time; half of the duration is %s", since, c.duration/2)
					}
					if !e.Lease.ExpiresAt.After(expiry) {
						t.Errorf("the expiry %s does not follow %s", e.Lease.ExpiresAt, expiry)
					}
					if e.Left != c.duration {
						t.Errorf("%s are left after a renewal", e.Left)
					}
					last, expiry = e.at, e.Lease.ExpiresAt
				}
			})
		})
	}
}

// The renewal keeps who holds the lease, since when, and its number.
func TestKeeperRenewsTheSameLease(t *testing.T) {
	keeping(t, 60*time.Second, 10*time.Second, func(k *kept) {
		first := k.file()
		k.until(5 * time.Minute)
		now := k.file()
		if now.HolderID != first.HolderID || now.AcquiredAt != first.AcquiredAt || now.Fence != first.Fence || now.Duration != first.Duration {
			t.Errorf("%s\nbecame\n%s", first.Encode(), now.Encode())
		}
		if now.Token == first.Token {
			t.Error("the token is the first one")
		}
		if kept := k.keeper.Lease(); string(kept.Encode()) != string(now.Encode()) {
			t.Errorf("the keeper keeps\n%s\nthe file has\n%s", kept.Encode(), now.Encode())
		}
	})
}

func TestGraceMustLeaveTimeToRenewAndToEnd(t *testing.T) {
	for _, c := range []struct {
		duration, grace time.Duration
		ok              bool
	}{
		{time.Second, MinGrace, true},
		{time.Second, MinGrace - 1, false},
		{time.Second, 0, false},
		{time.Second, -time.Second, false},
		{time.Second, 499 * time.Millisecond, true},
		{time.Second, 500 * time.Millisecond, false}, // gives up when it should renew
		{time.Second, time.Second, false},
		{time.Second, time.Hour, false},
		{15 * time.Minute, 10 * time.Second, true},
		{15 * time.Minute, 7*time.Minute + 30*time.Second - 1, true},
		{15 * time.Minute, 7*time.Minute + 30*time.Second, false},
		{MaxDuration, 14 * 24 * time.Hour, true},
		{MaxDuration, 15 * 24 * time.Hour, false},
	} {
		if err := CheckGrace(c.duration, c.grace); (err == nil) != c.ok {
			t.Errorf("a duration of %s with a grace of %s: %v", c.duration, c.grace, err)
		}
	}
}

func TestDefaultGraceFitsEveryDuration(t *testing.T) {
	for d := MinDuration; d <= MaxDuration; d += max(d/7, time.Millisecond) {
		grace := DefaultGrace(d)
		if err := CheckGrace(d, grace); err != nil {
			t.Errorf("a duration of %s: %v", d, err)
		}
		if grace != min(10*time.Second, d/4) {
			t.Errorf("the default grace for %s is %s", d, grace)
		}
	}
}

// A child that ends while a renewal is in flight: the renewal finishes, then the release finds what it wrote.
func TestStopWaitsForTheRenewalInFlight(t *testing.T) {
	for _, step := range []string{"observed", "claimed", "compared", "applied", "confirmed"} {
		t.Run(step, func(t *testing.T) {
			keeping(t, 60*time.Second, 10*time.Second, func(k *kept) {
				inFlight, go_ := make(chan struct{}), make(chan struct{})
				k.meanwhile(step, func() {
					close(inFlight)
					<-go_
				})
				<-inFlight
				first := k.keeper.Lease()
				stopped := make(chan error, 1)
				go func() { stopped <- k.keeper.Stop(context.Background()) }()
				synctest.Wait()
				select {
				case <-stopped:
					t.Fatal("stopped while a renewal was in flight")
				default:
				}
				close(go_)
				k.must(<-stopped)
				if !k.keeper.Lease().ExpiresAt.After(first.ExpiresAt) {
					t.Error("the renewal in flight did not count")
				}
				out, err := k.Release(context.Background(), k.keeper.Lease().HolderID)
				k.must(err)
				if string(out.Lease.Encode()) != string(k.keeper.Lease().Encode()) {
					t.Errorf("released\n%s\nkept\n%s", out.Lease.Encode(), k.keeper.Lease().Encode())
				}
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				k.notLost()
				if o, err := k.read(); err != nil || o.Lease != nil {
					t.Errorf("a stopped keeper made a lease again: %v, %v", o.Lease, err)
				}
			})
		})
	}
}

func TestStopWaitsNoLongerThanItsContext(t *testing.T) {
	keeping(t, 60*time.Second, 10*time.Second, func(k *kept) {
		inFlight, go_ := make(chan struct{}), make(chan struct{})
		k.meanwhile("claimed", func() {
			close(inFlight)
			<-go_
		})
		<-inFlight
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		before := time.Now()
		if err := k.keeper.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(before) != 3*time.Second {
			t.Errorf("after %s: %v", time.Since(before), err)
		}
		close(go_)
	})
}

// Stopping is no loss, at any time, and neither is looking once more afterwards; both may happen twice.
func TestStopIsNoLoss(t *testing.T) {
	keeping(t, 60*time.Second, 10*time.Second, func(k *kept) {
		k.until(29 * time.Second)
		for range 2 {
			k.must(k.keeper.Stop(context.Background()))
			k.keeper.Check()
		}
		renewals := len(k.named("renewed"))
		k.until(59 * time.Second)
		k.notLost()
		k.until(61 * time.Second)
		k.keeper.Check()
		k.notLost()
		if n := len(k.named("renewed")); n != renewals {
			t.Errorf("renewed %d times after the stop", n-renewals)
		}
	})
}

// Both a stop and the loss may be first.
func TestStopAfterTheLoss(t *testing.T) {
	keeping(t, 60*time.Second, 10*time.Second, func(k *kept) {
		k.edit(func(l *Lease) { l.HolderID = "another" })
		k.lostBy(2*time.Second, CodeNotHolder)
		for range 2 {
			k.must(k.keeper.Stop(context.Background()))
		}
		k.onlyLoss()
	})
}
