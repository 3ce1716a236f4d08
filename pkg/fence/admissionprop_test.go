package fence

import (
	"bytes"
	"flag"
	"testing"

	"pgregory.net/rapid"

	"holdfast/pkg/procid"
)

// drawSituation draws what an admission may meet: any claim that can be read, whoever owns it, and any view of the rest.
func drawSituation(t *rapid.T, claims []specClaim) situation {
	s := situation{
		Resource:  rapid.SampledFrom([]string{specResource, "/data/sessions/moved"}).Draw(t, "resource"),
		Directory: rapid.SampledFrom([]string{specDirectory, specAlias, specPlain, specOtherPlain}).Draw(t, "directory"),
		Created:   rapid.Bool().Draw(t, "created"),
		Lease:     rapid.Bool().Draw(t, "lease"),
		Verdict:   procid.Verdict{Word: rapid.SampledFrom(everyWord).Draw(t, "verdict")},
	}
	if i := rapid.IntRange(-1, len(claims)-1).Draw(t, "claim"); i >= 0 {
		doc := claims[i].doc
		for _, path := range doc.paths() {
			if lastName(path) == "pid" {
				doc = doc.with(path, rapid.IntRange(1, 1<<31-1).Draw(t, path))
			}
		}
		// A pid that the schema does not have leaves the claim as it was.
		c, err := Decode([]byte(doc.stringify()))
		if err != nil {
			c, err = Decode([]byte(claims[i].doc.stringify()))
		}
		if err != nil {
			t.Fatal(err)
		}
		s.Claim = c
	}
	return s
}

// drawRequest draws a request, mostly one that could be admitted to the directory.
func drawRequest(t *rapid.T, s *situation) Request {
	if rapid.IntRange(0, 3).Draw(t, "sane") > 0 {
		profile := rapid.Bool().Draw(t, "profiled")
		s.Directory = rapid.SampledFrom(everySelect(profile)).Draw(t, "selected")
		req := Request{Session: "s1", Owner: specOwner(rapid.IntRange(2, 1<<22).Draw(t, "pid"))}
		if profile {
			req.Profile = specProfile
		}
		return req
	}
	return Request{
		Session: rapid.SampledFrom([]string{"s1", "s2", ""}).Draw(t, "session"),
		Profile: rapid.SampledFrom([]string{"", specProfile, "/home/v", "relative"}).Draw(t, "profile"),
		Owner:   procid.Identity{PID: rapid.IntRange(-1, 1<<32).Draw(t, "pid"), StartKey: rapid.String().Draw(t, "startKey"), Hostname: rapid.String().Draw(t, "hostname")},
	}
}

// Whatever a request and a situation are, the answer is a refusal or a claim that can be read again, and nobody is admitted
// over an owner that has neither closed nor been proven dead.
func TestAnAdmissionIsARefusalOrAClaimThatIsRead(t *testing.T) {
	claims, admitted := validClaims(), 0
	moreChecks(t)
	rapid.Check(t, func(t *rapid.T) {
		s := drawSituation(t, claims)
		req := drawRequest(t, &s)
		var before []byte
		if s.Claim != nil {
			before = s.Claim.Encode()
		}
		c, refusal := admit(req, s, specWrite)
		if s.Claim != nil && !bytes.Equal(s.Claim.Encode(), before) {
			t.Fatalf("the claim that was read is changed: %s", s.Claim.Encode())
		}
		if refusal != nil {
			if refusal.Code == "" {
				t.Fatalf("%+v", refusal)
			}
			return
		}
		again, err := Decode(c.Encode())
		if err != nil || !bytes.Equal(again.Encode(), c.Encode()) {
			t.Fatalf("%v: %s", err, c.Encode())
		}
		if c.State != Fenced || c.SchemaVersion == SchemaLegacy || c.Owner != again.Owner || c.Generation != specWrite.Generation {
			t.Fatalf("%s", c.Encode())
		}
		was := s.Claim
		admitted++
		if was == nil {
			if s.Lease && !s.Created {
				t.Fatal("admitted beside a native lease that no claim explains")
			}
			return
		}
		over := was.State != Closed
		switch {
		case was.Resource != s.Resource:
			t.Fatal("admitted over the claim of another directory")
		case over && s.Verdict.Word != procid.Dead:
			t.Fatalf("admitted over %s whose owner is %q", was.State, s.Verdict.Word)
		case s.Lease && !over:
			t.Fatal("admitted over a closed claim beside a native lease")
		case s.Lease && (was.Lease == NeverHeld && was.State != Reserved || was.Lease == Released || was.Lease == Failed):
			t.Fatal("a native lease is attributed to an owner that had none")
		case over != (c.ReclaimedFrom != nil):
			t.Fatalf("over %s: reclaimedFrom %+v", was.State, c.ReclaimedFrom)
		case c.FirstParticipation != was.FirstParticipation:
			t.Fatal("the first participation is not kept")
		case c.SchemaVersion == SchemaPlain && was.SchemaVersion != SchemaPlain:
			t.Fatal("owners with a profile are locked out")
		}
	})
	if t.Logf("%d admissions", admitted); admitted < 100 {
		t.Errorf("only %d admissions", admitted)
	}
}

// moreChecks raises the number of draws, unless the command line says how many.
func moreChecks(t *testing.T) {
	const name = "rapid.checks"
	f := flag.Lookup(name)
	if f.Value.String() != f.DefValue {
		return
	}
	if err := flag.Set(name, "5000"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flag.Set(name, f.DefValue) })
}
