package lease

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"holdfast/pkg/regfile"
)

func TestHistoryConfirmsTheLastLine(t *testing.T) {
	of := func(op Op, token string) string { return strings.Replace(line(op, 7), "t7", token, 1) }
	for _, c := range []struct {
		name        string
		journal     string
		lease       []byte
		unconfirmed bool
	}{
		{"acquired, and the lease has its token", of(OpAcquired, "token-of-old"), valid().Encode(), false},
		{"acquired, and it expired since", of(OpAcquired, "token-of-old"), expired().Encode(), false},
		{"acquired, and the lease has another", of(OpAcquired, "lost"), valid().Encode(), true},
		{"acquired, and there is no lease", of(OpAcquired, "token-of-old"), nil, true},
		{"taken over, and the lease has its token", of(OpTakenOver, "token-of-old"), valid().Encode(), false},
		{"taken over, and the lease has another", of(OpTakenOver, "lost"), valid().Encode(), true},
		{"renewed, and the lease has its token", of(OpRenewed, "token-of-old"), valid().Encode(), false},
		{"renewed, and the lease has another", of(OpRenewed, "lost"), valid().Encode(), true},
		{"released, and there is no lease", of(OpReleased, "token-of-old"), nil, false},
		{"released, and there is one", of(OpReleased, "token-of-old"), valid().Encode(), true},
		{"compacted", of(OpCompacted, "k"), nil, false},
		{"the lease is corrupt", of(OpAcquired, "token-of-old"), []byte("{"), true},
		{"only the last line is asked about", of(OpAcquired, "lost") + of(OpRenewed, "token-of-old"), valid().Encode(), false},
		{"a torn line after it", of(OpRenewed, "token-of-old") + `{"fence":8`, valid().Encode(), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.write(r.at(".journal"), []byte(c.journal))
			if c.lease != nil {
				r.plant(c.lease)
			}
			h, err := r.player("reader").History()
			if err != nil {
				t.Fatal(err)
			}
			for i, rec := range h.Records {
				last := i == len(h.Records)-1
				equal(t, "unconfirmed", rec.Unconfirmed, last && c.unconfirmed)
			}
			equal(t, "the unreadable lines", h.Unreadable, strings.Count(c.journal, `{"fence":8`))
		})
	}
}

// A foreign lease's token may be of any length; the journal keeps 200 characters of it, which still confirm.
func TestHistoryConfirmsALongToken(t *testing.T) {
	r := newRig(t)
	l := valid()
	l.HolderID = strings.Repeat("é", 500)
	r.plant(l.Encode())
	p := r.player("alice")
	p.opts.NewID = func() string { return strings.Repeat("ü", 500) }
	out, err := renewOf(l.HolderID)(p)
	succeeded(t, out, err)
	h, err := p.History()
	if err != nil || len(h.Records) != 1 || h.Records[0].Unconfirmed {
		t.Errorf("got %+v, %v", h, err)
	}
	equal(t, "the holder in the line", h.Records[0].Entry.HolderID, strings.Repeat("é", 200))
}

// A number that does not exceed one before it is void; lines that carry the number of their lease are not.
func TestHistoryMarksVoidLines(t *testing.T) {
	r := newRig(t)
	r.write(r.at(".journal"), []byte(
		line(OpCompacted, 9)+line(OpRenewed, 4)+line(OpAcquired, 5)+line(OpAcquired, 5)+line(OpReleased, 5)+
			"damage\n"+line(OpTakenOver, 9)+line(OpAcquired, 8)+line(OpRenewed, 8)+line(OpAcquired, 10)))
	h, err := r.player("reader").History()
	if err != nil {
		t.Fatal(err)
	}
	var void []string
	for _, rec := range h.Records {
		if rec.Void {
			void = append(void, rec.Entry.Token)
		}
	}
	equal(t, "the void lines", strings.Join(void, " "), "t5 t8")
	equal(t, "the unreadable lines", h.Unreadable, 1)
}

func TestHistoryOfNothing(t *testing.T) {
	r := newRig(t)
	missing, err := Open(r.dir+"/missing/l.lock", Options{AllowMissing: true})
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*Store{"no journal": r.player("reader").Store, "no directory": missing} {
		if h, err := s.History(); err != nil || len(h.Records) != 0 || h.Unreadable != 0 {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
	}
}

// Each mutation leaves its line, with the time of its decision.
func TestEveryMutationLeavesItsLine(t *testing.T) {
	r := newRig(t)
	alice, bob := r.player("alice"), r.player("bob")
	for _, do := range []func() (*Outcome, error){
		func() (*Outcome, error) {
			return alice.Acquire(context.Background(), AcquireRequest{Label: "nightly"})
		},
		func() (*Outcome, error) { return renewOf("alice-1")(alice) },
		func() (*Outcome, error) { r.add(time.Hour); return takeOver(bob) },
		func() (*Outcome, error) { return releaseOf("bob-1")(alice) },
	} {
		out, err := do()
		succeeded(t, out, err)
		r.add(time.Second)
	}
	want := []Entry{
		{1, OpAcquired, "alice-1", "alice-2", FormatTime(t0), "host-of-alice", "nightly"},
		{1, OpRenewed, "alice-1", "alice-4", FormatTime(t0.Add(time.Second)), "host-of-alice", "nightly"},
		{2, OpTakenOver, "bob-1", "bob-2", FormatTime(t0.Add(time.Hour + 2*time.Second)), "host-of-bob", ""},
		{2, OpReleased, "bob-1", "bob-2", FormatTime(t0.Add(time.Hour + 3*time.Second)), "host-of-alice", ""},
	}
	got := r.entries()
	if len(got) != len(want) {
		t.Fatalf("%d lines, want %d", len(got), len(want))
	}
	for i := range want {
		equal(t, "line", got[i], want[i])
	}
}

// A broken file is moved only by its own fingerprint, and only while it is broken.
func TestSetAside(t *testing.T) {
	ctx := context.Background()
	broken, journal := "{", "garbage\n"
	print := func(s string) string { return regfile.Fingerprint([]byte(s)) }
	for _, c := range []struct {
		name           string
		lease, journal string
		fingerprint    string
		code           string
		from           string // suffix of what is moved
	}{
		{"a corrupt lease", broken, line(OpAcquired, 1), print(broken), "", ""},
		{"a corrupt journal", string(valid().Encode()), journal, print(journal), "", ".journal"},
		{"both corrupt, the lease is meant", broken, journal, print(broken), "", ""},
		{"both corrupt, the journal is meant", broken, journal, print(journal), "", ".journal"},
		{"another fingerprint", broken, journal, print("x"), CodeFingerprintMismatch, ""},
		{"no fingerprint", broken, journal, "", CodeFingerprintMismatch, ""},
		{"a readable lease", string(valid().Encode()), line(OpAcquired, 1), print(string(valid().Encode())), CodeNotBroken, ""},
		{"a readable journal", broken, line(OpAcquired, 1), print(line(OpAcquired, 1)), CodeNotBroken, ""},
		{"nothing there", "", "", print(""), CodeFingerprintMismatch, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			files := map[string]string{"": c.lease, ".journal": c.journal}
			for suffix, content := range files {
				if content != "" {
					r.write(r.at(suffix), []byte(content))
				}
			}
			p := r.player("alice")
			p.opts.NewID = uuid.NewString
			aside, err := p.SetAside(ctx, c.fingerprint)
			equal(t, "the code", errCode(err), c.code)
			for suffix, content := range files {
				moved := c.code == "" && suffix == c.from
				if moved {
					to, err := os.ReadFile(aside.To)
					if err != nil || string(to) != content || !strings.HasPrefix(aside.To, r.at(suffix)+".broken-") {
						t.Errorf("moved to %s: %q, %v", aside.To, to, err)
					}
					content = ""
				}
				equal(t, "the file"+suffix, r.bytes(suffix), content)
			}
			equal(t, "the claim", r.bytes(".mutex"), "")
		})
	}
}

// A file that is put in order, or breaks in another way, while the claim is waited for stays.
func TestSetAsideLooksAgainInsideTheClaim(t *testing.T) {
	for name, now := range map[string]string{"repaired": string(valid().Encode()), "broken otherwise": "[]"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.plant([]byte("{"))
			p := r.player("alice")
			p.opts.NewID = func() string { r.plant([]byte(now)); return uuid.NewString() } // made for the claim
			_, err := p.SetAside(context.Background(), regfile.Fingerprint([]byte("{")))
			refused(t, err, CodeFingerprintMismatch)
			equal(t, "the file", r.bytes(""), now)
			r.tidy()
		})
	}
}

// A lease file too large to be read has a fingerprint too, of its metadata.
func TestSetAsideMovesWhatIsTooLarge(t *testing.T) {
	r := newRig(t)
	r.plant(nil)
	if err := os.Truncate(r.path, regfile.DefaultLimit+1); err != nil {
		t.Fatal(err)
	}
	p := r.player("alice")
	p.opts.NewID = uuid.NewString
	_, err := acquire(p)
	equal(t, "the code", errCode(err), regfile.CodeTooLarge)
	if _, err := p.SetAside(context.Background(), Fingerprint(err)); err != nil {
		t.Fatal(err)
	}
	r.names("")
	out, err := acquire(p)
	succeeded(t, out, err)
}
