package lease

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// observer is a participant of a filesystem that machines share whose clocks disagree: its wall clock is the rig's, its
// boottime is the bubble's clock.
func (r *rig) observer(start time.Time) *player {
	p := r.player("alice")
	p.opts.Boottime = func() time.Duration { return time.Since(start) }
	return p
}

func observing(p *player, ctx context.Context) (*Outcome, error) {
	return p.Acquire(ctx, AcquireRequest{TakeOver: true, Observe: true})
}

// case B16: however expired the lease looks, a full recorded duration is waited on the own clock before it is taken over.
func TestObserveWatchesForTheWholeRecordedDuration(t *testing.T) {
	r := newRig(t)
	l := expired()
	l.Duration = 600.5
	r.plant(l.Encode())
	r.add(24 * time.Hour)
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		p := r.observer(start)
		told := time.Duration(0)
		p.opts.Observing = func(of *Lease, d time.Duration) { told = d; equal(t, "the lease watched", of.HolderID, "old") }
		out, err := observing(p, t.Context())
		succeeded(t, out, err)
		if waited := time.Since(start); waited < 600500*time.Millisecond || waited > 601*time.Second {
			t.Errorf("it watched for %s", waited)
		}
		equal(t, "the duration told", told, 600500*time.Millisecond)
		equal(t, "what it replaced", out.Replaced.HolderID, "old")
	})
	r.names("alice-1")
	r.tidy()
}

// The wall clock decides nothing while the lease is watched; a boottime that jumps, because the machine was suspended,
// counts.
func TestObserveCountsOnTheBoottimeClock(t *testing.T) {
	for _, c := range []struct {
		name string
		wall time.Duration // how far the wall clock jumps after 10 s
		boot time.Duration // how far the boottime does
		want time.Duration
	}{
		{"neither jumps", 0, 0, 900 * time.Second},
		{"the wall clock is set forward", 48 * time.Hour, 0, 900 * time.Second},
		{"the machine was suspended", time.Hour, time.Hour, 11 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.plant(expired().Encode())
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				p := r.observer(start)
				p.opts.Boottime = func() time.Duration {
					since := time.Since(start)
					if since >= 10*time.Second {
						return since + c.boot
					}
					return since
				}
				go func() {
					time.Sleep(10 * time.Second)
					r.add(c.wall)
				}()
				out, err := observing(p, t.Context())
				succeeded(t, out, err)
				if waited := time.Since(start); waited < c.want-time.Second || waited > c.want+time.Second {
					t.Errorf("it watched for %s, want %s", waited, c.want)
				}
			})
		})
	}
}

// One changed byte shows that the holder may live, even when it makes no difference to the lease, and even when it comes
// in the last moment.
func TestObserveRefusesWhenAByteChanges(t *testing.T) {
	reordered := append([]byte(" "), expired().Encode()...)
	renewedByThem := planted("old", ms.Add(-time.Second))
	renewedByThem.Token = "their next"
	for _, c := range []struct {
		name    string
		after   time.Duration
		content []byte // nil: the lease is released
	}{
		{"a space", time.Minute, reordered},
		{"a renewal by a clock that is behind", time.Minute, renewedByThem.Encode()},
		{"in the last second", 899 * time.Second, reordered},
		{"a release", time.Minute, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.plant(expired().Encode())
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				go func() {
					time.Sleep(c.after)
					if c.content == nil {
						r.remove("")
						return
					}
					r.plant(c.content)
				}()
				_, err := observing(r.observer(start), t.Context())
				refused(t, err, CodeChanged)
				if waited := time.Since(start); waited > c.after+time.Second {
					t.Errorf("it noticed %s after the change", waited-c.after)
				}
			})
			equal(t, "the file", r.bytes(""), string(c.content))
			r.tidy()
		})
	}
}

// A change that falls after the last look is found by the comparison inside the claim.
func TestObserveComparesOnceMoreInsideTheClaim(t *testing.T) {
	r := newRig(t)
	r.plant(expired().Encode())
	synctest.Test(t, func(t *testing.T) {
		p := r.observer(time.Now())
		p.meanwhile("observed", func() { r.plant(other()) })
		_, err := observing(p, t.Context())
		refused(t, err, CodeChanged)
	})
	equal(t, "the file", r.bytes(""), string(other()))
}

func TestObserveCanBeCancelled(t *testing.T) {
	r := newRig(t)
	r.plant(expired().Encode())
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			time.Sleep(time.Minute)
			cancel()
		}()
		_, err := observing(r.observer(start), ctx)
		if !errors.Is(err, context.Canceled) || time.Since(start) > 61*time.Second {
			t.Errorf("got %v after %s", err, time.Since(start))
		}
	})
	equal(t, "the file", r.bytes(""), string(expired().Encode()))
	r.tidy()
}

// There is nothing to watch where no lease is, and a lease that is held is refused without a wait.
func TestObserveWaitsOnlyForAnExpiredLease(t *testing.T) {
	for name, l := range map[string]*Lease{"absent": nil, "held": valid()} {
		r := newRig(t)
		if l != nil {
			r.plant(l.Encode())
		}
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			_, err := observing(r.observer(start), t.Context())
			want := map[string]string{"absent": "", "held": CodeHeld}[name]
			equal(t, name, errCode(err), want)
			equal(t, name+": the time waited", time.Since(start), 0)
		})
	}
}

// A directory that is moved away while its lease is watched, or waited for, takes the answer with it: what would be taken then
// is a lease that nobody else sees.
func TestWaitEndsWhenTheDirectoryIsMoved(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context, s *Store) error{
		"acquire": func(ctx context.Context, s *Store) error {
			_, err := s.AcquireWaiting(ctx, AcquireRequest{}, time.Minute, nil)
			return err
		},
		"observe": func(ctx context.Context, s *Store) error {
			_, err := s.Acquire(ctx, AcquireRequest{TakeOver: true, Observe: true})
			return err
		},
		"wait":  func(ctx context.Context, s *Store) error { return s.Await(ctx, UntilFree, time.Minute, nil) },
		"watch": func(ctx context.Context, s *Store) error { return s.Watch(ctx, func() error { return nil }) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			l := planted("holder", t0.Add(time.Hour))
			if name == "observe" {
				l = planted("holder", t0.Add(-time.Hour))
				l.Duration = 1
			}
			r.plant(l.Encode())
			p := r.player("a")
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			over := make(chan error, 1)
			go func() { over <- wait(ctx, p.Store) }()
			time.Sleep(100 * time.Millisecond)
			if err := os.Rename(r.dir, r.dir+".away"); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(r.dir, 0o755); err != nil {
				t.Fatal(err)
			}
			refused(t, <-over, CodeDirectoryMoved)
		})
	}
}
