package lease

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/pkg/claim"
	"holdfast/pkg/regfile"
)

// A mutation that is held up, before or inside its claim, decides by the clock as it is when it has the claim.
func TestDecisionIsMadeAgainWithTheLateClock(t *testing.T) {
	for _, c := range []struct {
		name  string
		lease *Lease
		do    act
		delay time.Duration
		code  string
	}{
		{"renew, expired meanwhile", valid(), renewOf("old"), time.Minute, CodeExpired},
		{"renew, a millisecond left", valid(), renewOf("old"), ms.Add(time.Minute).Sub(t0) - time.Millisecond, ""},
		{"release, expired meanwhile", valid(), releaseOf("old"), time.Hour, ""},
		{"take-over, the clock went back before the expiry", expired(), takeOver, -time.Second, CodeHeld},
		{"take-over, later still", expired(), takeOver, time.Hour, ""},
		{"acquire, an hour later", nil, acquire, time.Hour, ""},
	} {
		for _, step := range []string{"observed", "claimed"} {
			t.Run(c.name+"/"+step, func(t *testing.T) {
				r := newRig(t)
				if c.lease != nil {
					r.plant(c.lease.Encode())
				}
				before := r.bytes("")
				p := r.player("alice")
				p.meanwhile(step, func() { r.add(c.delay) })
				out, err := c.do(p)
				equal(t, "the code", errCode(err), c.code)
				r.tidy()
				switch {
				case c.code != "":
					equal(t, "the file", r.bytes(""), before)
					equal(t, "the journal", r.bytes(".journal"), "")
				case r.lease() != nil:
					equal(t, "the expiry counts from then", r.lease().ExpiresAt, cut(t0.Add(c.delay+900*time.Second)))
				default:
					equal(t, "what was released", out.Lease.HolderID, "old")
				}
			})
		}
	}
}

// The duration that was asked for at an acquire is the one that a later renewal keeps, and --duration changes.
func TestDurationIsKeptUntilAnotherIsAsked(t *testing.T) {
	r := newRig(t)
	p := r.player("alice")
	out, err := p.Acquire(context.Background(), AcquireRequest{Duration: 90 * time.Second, Label: "nightly"})
	succeeded(t, out, err)
	for _, step := range []struct {
		ask, want time.Duration
	}{{0, 90 * time.Second}, {time.Hour, time.Hour}, {0, time.Hour}} {
		r.add(time.Second)
		out, err := p.Renew(context.Background(), "alice-1", step.ask)
		succeeded(t, out, err)
		l := r.lease()
		equal(t, "the duration", l.Duration, step.want.Seconds())
		equal(t, "the expiry", l.ExpiresAt, cut(r.Now().Add(step.want)))
		equal(t, "the holder", l.HolderID, "alice-1")
		equal(t, "acquiredAt", l.AcquiredAt, FormatTime(t0))
		equal(t, "the fence token", l.Fence, 1)
		equal(t, "the label", l.Label, "nightly")
		equal(t, "the outcome", string(out.Lease.Encode()), r.bytes(""))
	}
}

// A renewal or release is a fact once it is confirmed; that its journal line cannot be written is a warning. An acquire,
// whose number has to be durable, is refused by the same journal, and nothing is published.
func TestJournalFailureFailsOnlyWhatNeedsANumber(t *testing.T) {
	nul := func(r *rig) { r.write(r.at(".journal"), make([]byte, 300)) }
	for _, name := range []string{"renew", "release"} {
		do := map[string]act{"renew": renewOf("old"), "release": releaseOf("old")}[name]
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.plant(valid().Encode())
			nul(r)
			out, err := do(r.player("alice"))
			if err != nil {
				t.Fatal(err)
			}
			if len(out.Warnings) != 1 || !strings.Contains(out.Warnings[0], "the journal lacks the line of this "+name) {
				t.Errorf("warnings: %q", out.Warnings)
			}
			equal(t, "the journal", r.bytes(".journal"), strings.Repeat("\x00", 300))
			r.tidy()
		})
		t.Run(name+", the journal becomes a FIFO at the end", func(t *testing.T) {
			r := newRig(t)
			r.plant(valid().Encode())
			p := r.player("alice")
			p.meanwhile("confirmed", func() {
				if err := unix.Mkfifo(r.at(".journal"), 0o644); err != nil {
					t.Error(err)
				}
			})
			out, err := do(p)
			if err != nil || len(out.Warnings) != 1 || !strings.Contains(out.Warnings[0], "named pipe") {
				t.Errorf("got %+v, %v", out, err)
			}
		})
	}
	t.Run("take-over", func(t *testing.T) {
		r := newRig(t)
		r.plant(expired().Encode())
		nul(r)
		_, err := takeOver(r.player("alice"))
		refusal := refused(t, err, CodeJournalCorrupt)
		equal(t, "the fingerprint", refusal.Fingerprint, regfile.Fingerprint(make([]byte, 300)))
		equal(t, "the file", r.bytes(""), string(expired().Encode()))
		r.tidy()
	})
}

// The write fails in the system: the error is the system's, the lease is what it was, and no stage is left. The number
// that an acquire had taken is skipped.
func TestAFailedWriteLeavesTheLease(t *testing.T) {
	for _, c := range []struct {
		name  string
		lease *Lease
		do    act
	}{{"acquire", nil, acquire}, {"take-over", expired(), takeOver}, {"renew", valid(), renewOf("old")}} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			if c.lease != nil {
				r.plant(c.lease.Encode())
			}
			before := r.bytes("")
			p := r.player("alice")
			var lift func()
			p.iv.at = func(step string) {
				switch step {
				case "compared":
					lift = limitFileSize(t, 100)
				case "applied":
					lift()
				}
			}
			_, err := c.do(p)
			if !errors.Is(err, unix.EFBIG) || errCode(err) != regfile.CodeIO {
				t.Fatalf("got %v", err)
			}
			equal(t, "the file", r.bytes(""), before)
			r.tidy()
			p.iv.at = func(string) {}
			out, err := c.do(p)
			succeeded(t, out, err)
			want := map[string]uint64{"acquire": 2, "take-over": 9, "renew": 7}[c.name]
			equal(t, "the next try's fence token", out.Lease.Fence, want)
		})
	}
}

// limitFileSize makes writes of this process past size bytes fail with EFBIG until the returned function is called.
func limitFileSize(t *testing.T, size uint64) (lift func()) {
	t.Helper()
	signal.Ignore(unix.SIGXFSZ)
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
			t.Fatal(err)
		}
		signal.Reset(unix.SIGXFSZ)
	}
}

// The rename or the unlink fails because something that is no file has taken the name: what is there stays.
func TestADirectoryInTheLeasesPlaceStays(t *testing.T) {
	for name, do := range map[string]act{"take-over": takeOver, "release": releaseOf("old")} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.plant(expired().Encode())
			p := r.player("alice")
			p.meanwhile("compared", func() {
				r.remove("")
				if err := os.Mkdir(r.path, 0o755); err != nil {
					t.Error(err)
				}
			})
			_, err := do(p)
			if code := errCode(err); code != regfile.CodeIO || !errors.Is(err, unix.EISDIR) {
				t.Errorf("got %v", err)
			}
			if st, err := os.Lstat(r.path); err != nil || !st.IsDir() {
				t.Errorf("the directory: %v, %v", st, err)
			}
		})
	}
}

// The claim stays: the answer says how the lease stands before it speaks of the claim, and an expired lease is not called
// held.
func TestClaimTimeoutTellsTheLeasesSituationFirst(t *testing.T) {
	for _, c := range []struct {
		name  string
		lease *Lease
		do    act
		begin string
	}{
		{"held", valid(), renewOf("old"), "lock held by old"},
		{"expired", expired(), takeOver, "expired lease from old"},
		{"free", nil, acquire, "no lease, no live holder"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			if c.lease != nil {
				r.plant(c.lease.Encode())
			}
			r.write(r.at(".mutex"), []byte("bare-token\n"))
			p := r.player("alice")
			p.iv.claimBound = 20 * time.Millisecond
			_, err := c.do(p)
			refusal := refused(t, err, CodeClaimTimeout)
			if !strings.HasPrefix(refusal.Error(), c.begin) || !strings.Contains(refusal.Error(), r.at(".mutex")) {
				t.Errorf("the reason is %q", refusal)
			}
			equal(t, "the claim", refusal.Claim.State, claim.Unproven)
			equal(t, "its token", refusal.Claim.Token, "bare-token")
			equal(t, "the claim file", r.bytes(".mutex"), "bare-token\n")
			var late *claim.TimeoutError
			equal(t, "the error below is the claim's", errors.As(err, &late), true)
		})
	}
}

// A caller that gives up ends the wait for the claim.
func TestWaitForTheClaimCanBeCancelled(t *testing.T) {
	r := newRig(t)
	r.write(r.at(".mutex"), nil)
	p := r.player("alice")
	p.iv.claimBound = time.Hour
	ctx, cancel := context.WithCancel(context.Background())
	p.meanwhile("observed", cancel)
	if _, err := p.Acquire(ctx, AcquireRequest{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	r.names("")
}

// A system call may fail and have been carried out, over a network for one: what counts is what is there afterwards.
func TestOutcomeIsReadBackWhateverTheCallSaid(t *testing.T) {
	l := planted("alice", ms.Add(time.Hour))
	publish := change{op: OpRenewed, publish: l}
	remove := change{op: OpReleased}
	for _, c := range []struct {
		name  string
		do    change
		there []byte
		err   error
		code  string
		how   string
	}{
		{"published, and an error said", publish, l.Encode(), unix.EIO, "", ""},
		{"removed, and an error said", remove, nil, unix.EIO, "", ""},
		{"removed, and somebody else had", remove, nil, unix.ENOENT, "", ""},
		{"not published, and an error said", publish, valid().Encode(), unix.EIO, regfile.CodeIO, ""},
		{"not removed, and an error said", remove, valid().Encode(), unix.EIO, regfile.CodeIO, ""},
		{"its stage was there already", publish, valid().Encode(), unix.EEXIST, CodeChanged, "somebody else used its staging file"},
		{"its stage was taken away", publish, valid().Encode(), unix.ENOENT, CodeChanged, "somebody else used its staging file"},
		{"its stage was taken away, and another's published", publish, other(), unix.ENOENT, CodeChanged, "the lease differs, it names other on elsewhere"},
		{"the lease had gone", publish, nil, unix.ENOENT, CodeChanged, "the lease is gone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			if c.there != nil {
				r.plant(c.there)
			}
			m := mutation{Store: r.player("alice").Store, first: seen(t, valid())}
			var content []byte
			if c.do.publish != nil {
				content = c.do.publish.Encode()
			}
			err := m.confirm(c.do, content, regfile.IOError("rename", r.path, c.err))
			equal(t, "the code", errCode(err), c.code)
			if c.code == CodeChanged {
				refusal := refused(t, err, CodeChanged)
				equal(t, "how", refusal.How, c.how)
				equal(t, "it says that it published", refusal.Written != nil, false)
			}
		})
	}
}
