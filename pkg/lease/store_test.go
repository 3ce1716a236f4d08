package lease

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/pkg/claim"
	"holdfast/pkg/regfile"
)

// A missing directory is an error to who may create it, and no lease to who only looks.
func TestMissingDirectoryReadsAsNoLease(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "missing")
	path := filepath.Join(dir, "l.lock")
	if _, err := Open(path, Options{}); errCode(err) != regfile.CodeDirectoryInvalid {
		t.Errorf("open: %v", err)
	}
	s, err := Open(path, Options{AllowMissing: true})
	if err != nil {
		t.Fatal(err)
	}
	st, err := s.Status()
	if err != nil || st.State != StateFree || st.Lease != nil || st.Claim != nil || st.Stage != nil {
		t.Errorf("status: %+v, %v", st, err)
	}
	in, err := s.InspectClaim()
	if err != nil || in.State != claim.Absent || in.Path != path+".mutex" {
		t.Errorf("inspect: %+v, %v", in, err)
	}
	_, verifyErr := s.Verify(Check{Holder: "h"})
	_, clearErr := s.ClearClaim(claim.ClearRequest{Token: "t"})
	_, asideErr := s.SetAside(ctx, "sha256:0")
	_, acquireErr := s.Acquire(ctx, AcquireRequest{})
	_, renewErr := s.Renew(ctx, "h", 0)
	_, releaseErr := s.Release(ctx, "h")
	for _, c := range []struct {
		verb string
		err  error
		code string
	}{
		{"verify", verifyErr, CodeAbsent}, {"clear", clearErr, CodeAbsent}, {"set-aside", asideErr, CodeFingerprintMismatch},
		{"acquire", acquireErr, regfile.CodeDirectoryInvalid}, {"renew", renewErr, CodeAbsent}, {"release", releaseErr, CodeAbsent},
	} {
		equal(t, c.verb, errCode(c.err), c.code)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory was created: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Verify and status read the lease, whatever is beside it, and change nothing.
func TestLookingNeedsNoClaim(t *testing.T) {
	r := newRig(t)
	r.plant(valid().Encode())
	r.write(r.at(".mutex"), []byte("somebody\n"))
	r.write(r.at(".stage"), []byte("half"))
	p := r.player("alice")
	l, err := p.Verify(Check{Holder: "old"})
	if err != nil || l.HolderID != "old" {
		t.Errorf("verify: %v, %v", l, err)
	}
	l, err = p.Verify(Check{Holder: "me"})
	if refusal := refused(t, err, CodeNotHolder); refusal.Path != p.Path() || l.HolderID != "old" {
		t.Errorf("verify by another: %v, %+v", l, refusal)
	}
	st, err := p.Status()
	if err != nil || st.State != StateHeld || st.Claim == nil || st.Claim.State != claim.Unproven || st.Stage == nil || st.Stage.Size != 4 {
		t.Errorf("status: %+v, %v", st, err)
	}
	equal(t, "the time left", st.Remaining, ms.Add(time.Minute).Sub(t0))
	r.set(ms.Add(time.Minute))
	st, err = p.Status()
	if err != nil || st.State != StateExpired || st.Remaining != 0 {
		t.Errorf("status at the expiry: %+v, %v", st, err)
	}
	r.plant([]byte("{"))
	_, err = p.Verify(Check{Holder: "old"})
	refused(t, err, CodeCorrupt)
	st, err = p.Status()
	refused(t, err, CodeCorrupt)
	equal(t, "the claim is told all the same", st.Claim != nil, true)
	equal(t, "the claim", r.bytes(".mutex"), "somebody\n")
	equal(t, "the stage", r.bytes(".stage"), "half")
}

// What is no regular file in the journal's place fails every mutation before anything is written.
func TestJournalThatIsNoFileRefusesEveryMutation(t *testing.T) {
	for name, c := range map[string]struct {
		lease *Lease
		do    act
	}{
		"acquire": {nil, acquire}, "take-over": {expired(), takeOver},
		"renew": {valid(), renewOf("old")}, "release": {valid(), releaseOf("old")},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			if c.lease != nil {
				r.plant(c.lease.Encode())
			}
			before := r.bytes("")
			if err := unix.Mkfifo(r.at(".journal"), 0o644); err != nil {
				t.Fatal(err)
			}
			p := r.player("alice")
			_, err := c.do(p)
			var file *regfile.Error
			if !errors.As(err, &file) || file.Code != regfile.CodeNotRegular || file.Path != r.at(".journal") {
				t.Errorf("got %v", err)
			}
			equal(t, "the file", r.bytes(""), before)
			if _, err := p.History(); errCode(err) != regfile.CodeNotRegular {
				t.Errorf("history: %v", err)
			}
			r.tidy()
		})
	}
}

// Every refusal names the file and the fact, in one sentence without a control character.
func TestEveryRefusalSaysWhy(t *testing.T) {
	l := planted("h", ms.Add(90*time.Second))
	l.Label = "nightly"
	huge := lasting(0)
	huge.Duration = 3e300
	for _, c := range []struct {
		r    Refusal
		want string
	}{
		{Refusal{Code: CodeHeld, Lease: l}, "L is held by h (nightly) on elsewhere until 2026-11-30T05:04:52.123Z (1m30s left)"},
		{Refusal{Code: CodeExpired, Lease: expired(), now: ms.Add(time.Hour)}, "L: the lease of old on elsewhere expired at 2026-11-30T05:03:22.123Z, 1h0m0s ago"},
		{Refusal{Code: CodeAbsent}, "L does not exist: nobody holds the lease"},
		{Refusal{Code: CodeNotHolder, Holder: "x\n", Lease: l}, `L is not "x\n"'s: it names h (nightly) on elsewhere`},
		{Refusal{Code: CodeFenceMismatch, Fence: 8, Lease: l}, "L has fence token 7, not 8"},
		{Refusal{Code: CodeTooShort, MinRemaining: time.Hour, Lease: l}, "L expires in 1m30s, sooner than the 1h0m0s asked for"},
		{Refusal{Code: CodeDurationOutOfRange, Lease: huge}, "L: a lease of 3e+300 seconds that expires at 2026-11-30T05:04:22.123Z cannot be renewed on its recorded term"},
		{Refusal{Code: CodeFenceExhausted}, "L: the fence token has reached 2^53-1 and cannot grow"},
		{Refusal{Code: CodeChanged, How: "the lease is gone"}, "L changed meanwhile: the lease is gone"},
		{Refusal{Code: CodeChanged, How: "the lease is gone", Written: l}, "L changed meanwhile: the lease is gone; this call had published a lease of h"},
		{Refusal{Code: CodeNotBroken}, "L is readable, so it is not set aside"},
		{Refusal{Code: CodeFingerprintMismatch, Fingerprint: "sha256:0"}, "no broken file at L has the fingerprint sha256:0; nothing was moved"},
		{Refusal{Code: CodeClaimLost, How: "moved to M"}, "the claim of L was cleared by force meanwhile; moved to M"},
		{*corrupt(CodeCorrupt, "", "", parseFault("{")), "L is corrupt (truncated): it ends in the middle at byte 1; inspect it manually, it is never overwritten"},
	} {
		c.r.Path = "L"
		if c.r.now.IsZero() {
			c.r.now = ms
		}
		equal(t, c.r.Code, c.r.Error(), c.want)
		if strings.ContainsAny(c.r.Error(), "\n\x1b") {
			t.Errorf("a control character in %q", c.r.Error())
		}
	}
}

func parseFault(content string) error {
	_, err := Parse([]byte(content))
	return err
}

// The clocks that a program runs on.
func TestDefaultClocksRun(t *testing.T) {
	r := newRig(t)
	s, err := Open(r.path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	boot, wall := s.opts.Boottime(), s.opts.Now()
	time.Sleep(time.Millisecond)
	if s.opts.Boottime() <= boot || !s.opts.Now().After(wall) {
		t.Error("a clock stands still")
	}
	out, err := s.Acquire(context.Background(), AcquireRequest{})
	succeeded(t, out, err)
	equal(t, "the default duration", out.Lease.Duration, 900)
	if len(out.Lease.HolderID) != 36 || len(out.Lease.Token) != 36 || out.Lease.HolderID == out.Lease.Token {
		t.Errorf("the identifiers are %s and %s", out.Lease.HolderID, out.Lease.Token)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the hostname", out.Lease.Hostname, host)
}
