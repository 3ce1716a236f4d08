package claim

import (
	"strings"
	"testing"

	"holdfast/pkg/procid"
)

const (
	bootA = "01234567-89ab-cdef-0123-456789abcdef"
	bootB = "fedcba98-7654-3210-fedc-ba9876543210"
)

func TestTheStateOfAClaim(t *testing.T) {
	here := view{dev: 7, boot: bootA}
	mine := Evidence{Token: "t", StartKey: "linux:5@" + bootA + "/9", Dev: 7, KernelLock: true}
	with := func(change func(*Evidence)) *Evidence { e := mine; change(&e); return &e }
	said := func(w procid.Word) procid.Verdict { return procid.Verdict{Word: w, Reason: "that is why"} }

	for _, c := range []struct {
		name    string
		e       *Evidence
		creator procid.Word
		lock    lockSeen
		from    view
		want    State
	}{
		{"its lock is taken", &mine, procid.Live, lockTaken, here, HeldNow},
		{"its lock is taken, whatever is said of the creator", &mine, procid.Dead, lockTaken, here, HeldNow},
		{"its lock is taken, another program's", nil, "", lockTaken, here, HeldNow},
		{"its lock is taken, although the evidence has none", with(func(e *Evidence) { e.KernelLock = false }), procid.Dead, lockTaken, here, HeldNow},

		{"locked, free, the creator dead", &mine, procid.Dead, lockFree, here, Abandoned},
		{"locked, free, the creator dead, seen from another device", with(func(e *Evidence) { e.Dev = 8 }), procid.Dead, lockFree, here, Abandoned},
		{"locked, free, the creator dead in another boot", with(func(e *Evidence) { e.StartKey = "linux:5@" + bootB + "/9" }), procid.Dead, lockFree, here, Abandoned},
		{"locked, free, uncertain, but our boot and device", &mine, procid.Uncertain, lockFree, here, Abandoned},

		{"locked, free, the creator lives", &mine, procid.Live, lockFree, here, Unproven},
		{"locked, free, uncertain, another device", with(func(e *Evidence) { e.Dev = 8 }), procid.Uncertain, lockFree, here, Unproven},
		{"locked, free, uncertain, another boot", with(func(e *Evidence) { e.StartKey = "linux:5@" + bootB + "/9" }), procid.Uncertain, lockFree, here, Unproven},
		{"locked, free, uncertain, a weak key", with(func(e *Evidence) { e.StartKey = "linux:5@?/9" }), procid.Uncertain, lockFree, here, Unproven},
		{"locked, free, uncertain, our boot not known", with(func(e *Evidence) { e.StartKey = "linux:5@?/9" }), procid.Uncertain, lockFree, view{dev: 7}, Unproven},
		{"locked, free, uncertain, no key and no boot", with(func(e *Evidence) { e.StartKey = "" }), procid.Uncertain, lockFree, view{dev: 7}, Unproven},
		{"locked, free, on another host", with(func(e *Evidence) { e.StartKey = "linux:5@" + bootB + "/9" }), procid.OtherHost, lockFree, here, Unproven},
		{"never locked, the creator dead", with(func(e *Evidence) { e.KernelLock = false }), procid.Dead, lockFree, here, Unproven},
		{"locks are not supported here, the creator dead", &mine, procid.Dead, lockUnsupported, here, Unproven},
		{"no evidence, the lock free", nil, "", lockFree, here, Unproven},
		{"no evidence, no locks", nil, "", lockUnsupported, here, Unproven},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, reason := judge(c.e, said(c.creator), c.lock, c.from)
			if got != c.want || reason == "" || strings.HasSuffix(reason, ".") {
				t.Errorf("%s (%s), want %s", got, reason, c.want)
			}
		})
	}
}

func TestWhoMayClear(t *testing.T) {
	abandoned := Inspection{State: Abandoned, Token: "t", Fingerprint: "sha256:f"}
	unproven := Inspection{State: Unproven, Token: "t", Fingerprint: "sha256:f"}
	nameless := Inspection{State: Unproven, Fingerprint: "sha256:f"}
	held := Inspection{State: HeldNow, Token: "t", Fingerprint: "sha256:f"}
	for _, c := range []struct {
		name string
		in   Inspection
		req  ClearRequest
		want string
	}{
		{"abandoned, its token", abandoned, ClearRequest{Token: "t"}, ""},
		{"abandoned, its token, forced", abandoned, ClearRequest{Token: "t", Force: true}, ""},
		{"abandoned, its digest, forced", abandoned, ClearRequest{Digest: "sha256:f", Force: true}, ""},
		{"abandoned, its digest alone", abandoned, ClearRequest{Digest: "sha256:f"}, "claim-mismatch"},
		{"abandoned, another token", abandoned, ClearRequest{Token: "u"}, "claim-mismatch"},
		{"abandoned, another token, forced", abandoned, ClearRequest{Token: "u", Force: true}, "claim-mismatch"},
		{"abandoned, nothing named", abandoned, ClearRequest{Force: true}, "claim-mismatch"},
		{"unproven, its token", unproven, ClearRequest{Token: "t"}, "unproven"},
		{"unproven, its token, forced", unproven, ClearRequest{Token: "t", Force: true}, ""},
		{"unproven, its digest, forced", unproven, ClearRequest{Digest: "sha256:f", Force: true}, ""},
		{"unproven, its digest alone", unproven, ClearRequest{Digest: "sha256:f"}, "claim-mismatch"},
		{"unproven, another digest, forced", unproven, ClearRequest{Digest: "sha256:g", Force: true}, "claim-mismatch"},
		{"without a token, none named, forced", nameless, ClearRequest{Force: true}, "claim-mismatch"},
		{"without a token, its digest, forced", nameless, ClearRequest{Digest: "sha256:f", Force: true}, ""},
		{"held, its token", held, ClearRequest{Token: "t"}, "held"},
		{"held, everything named and forced", held, ClearRequest{Token: "t", Digest: "sha256:f", Force: true}, "held"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := refuseClear(c.in, c.req); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestParseEvidence(t *testing.T) {
	for _, c := range []struct{ name, content, token string }{
		{"a bare token", "5c0c7d3e-8a51-4a0c-9d8e-2f6b1f0f4a11", "5c0c7d3e-8a51-4a0c-9d8e-2f6b1f0f4a11"},
		{"a bare token in a line", "abc\n", "abc"},
		{"nothing", "", ""},
		{"white space", " \n", ""},
		{"two words", "abc def", ""},
		{"two lines", "abc\ndef\n", ""},
		{"not ASCII", "tökén", ""},
		{"control characters", "a\x1b[31m", ""},
		{"NUL bytes", "\x00\x00", ""},
		{"128 characters", strings.Repeat("x", 128), strings.Repeat("x", 128)},
		{"129 characters", strings.Repeat("x", 129), ""},
		{"another program's JSON", `{"token":"t","pid":5}`, "t"},
		{"JSON with members of no evidence", `{"token":"t","more":1}`, `{"token":"t","more":1}`},
		{"evidence without a token", `{"pid":5}`, `{"pid":5}`},
		{"evidence cut short", `{"token":"t","tool":"x`, `{"token":"t","tool":"x`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, token := parseEvidence([]byte(c.content)); token != c.token {
				t.Errorf("%q, want %q", token, c.token)
			}
		})
	}
}

// FuzzParseEvidence: whatever a claim holds, a token that it yields can be typed on a command line, and evidence has one.
func FuzzParseEvidence(f *testing.F) {
	for _, text := range []string{
		"", "abc\n", "a b", "\x00", `{"token":"t"}`, `{"token":""}`, `{"token":"t","pid":-1,"dev":18446744073709551615}`,
		`{"token":"t","tool":"x","op":"y","pid":1,"startKey":"linux:1","hostname":"h","enteredAt":"","dev":1,"kernelLock":true}` + "\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		e, token := parseEvidence(content)
		if e != nil {
			if e.Token == "" || e.Token != token {
				t.Errorf("%+v and %q", e, token)
			}
			judge(e, procid.Judge(e.identity(), true), lockFree, view{})
			return
		}
		for _, r := range token {
			if r <= ' ' || r > '~' {
				t.Errorf("token %q", token)
			}
		}
		if len(token) > 128 || !strings.Contains(string(content), token) {
			t.Errorf("token %q of %q", token, content)
		}
	})
}
