package lease

import (
	"strings"
	"testing"
	"time"
)

// seen is an observed lease.
func seen(t *testing.T, l *Lease) Observed {
	t.Helper()
	if l == nil {
		return Observed{}
	}
	content := l.Encode()
	parsed, err := Parse(content)
	if err != nil {
		t.Fatal(err)
	}
	return Observed{Lease: parsed, Bytes: content}
}

// ms is t0 cut to milliseconds: an instant that a file can carry.
var ms = t0.Truncate(time.Millisecond)

// Each row is one cell of the protocol's table: a verb on a state. "me" is the one who asks.
func TestDecisionTable(t *testing.T) {
	const month = 30 * 24 * time.Hour
	mine, theirs := planted("me", ms.Add(time.Minute)), planted("other", ms.Add(time.Minute))
	mineExpired, theirsExpired := planted("me", ms.Add(-time.Minute)), planted("other", ms.Add(-time.Minute))
	acquires := terms{holderID: "new", token: "fresh", duration: DefaultDuration}
	takes := acquires
	takes.takeOver = true
	renews, releases := renewal{holderID: "me", token: "fresh"}, removal{"me"}

	for _, row := range []struct {
		name   string
		state  *Lease
		decide decision
		code   string // of the refusal; "" when permitted
		op     Op
	}{
		{"acquire/absent", nil, acquires.decide, "", OpAcquired},
		{"acquire/held", theirs, acquires.decide, CodeHeld, ""},
		{"acquire/expired", theirsExpired, acquires.decide, CodeExpired, ""},
		{"take-over/absent", nil, takes.decide, "", OpAcquired},
		{"take-over/held", theirs, takes.decide, CodeHeld, ""},
		{"take-over/expired", theirsExpired, takes.decide, "", OpTakenOver},
		{"renew/absent", nil, renews.decide, CodeAbsent, ""},
		{"renew/held by me", mine, renews.decide, "", OpRenewed},
		{"renew/held by another", theirs, renews.decide, CodeNotHolder, ""},
		{"renew/expired, mine", mineExpired, renews.decide, CodeExpired, ""},
		{"renew/expired, another's", theirsExpired, renews.decide, CodeNotHolder, ""},
		{"release/absent", nil, releases.decide, CodeAbsent, ""},
		{"release/held by me", mine, releases.decide, "", OpReleased},
		{"release/held by another", theirs, releases.decide, CodeNotHolder, ""},
		{"release/expired, mine", mineExpired, releases.decide, "", OpReleased},
		{"release/expired, another's", theirsExpired, releases.decide, CodeNotHolder, ""},
		{"acquire/expired at this very millisecond", planted("other", ms), acquires.decide, CodeExpired, ""},
		{"take-over/expired at this very millisecond", planted("other", ms), takes.decide, "", OpTakenOver},
		{"take-over/expires in a millisecond", planted("other", ms.Add(time.Millisecond)), takes.decide, CodeHeld, ""},
		{"renew/expired at this very millisecond", planted("me", ms), renews.decide, CodeExpired, ""},
		{"renew/expires in a millisecond", planted("me", ms.Add(time.Millisecond)), renews.decide, "", OpRenewed},
		{"renew/30 days", lasting(month), renews.decide, "", OpRenewed},
		{"renew/30 days and a second", lasting(month + time.Second), renews.decide, CodeDurationOutOfRange, ""},
		{"renew/half a second", lasting(time.Second / 2), renews.decide, "", OpRenewed},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := seen(t, row.state)
			c, refusal := row.decide(o, ms)
			switch {
			case row.code == "" && refusal != nil:
				t.Fatalf("refused: %v", refusal.Code)
			case row.code == "":
				equal(t, "the operation", c.op, row.op)
				equal(t, "the lease decided on", c.prior, o.Lease)
			case refusal == nil:
				t.Fatalf("permitted, want %s", row.code)
			default:
				equal(t, "the code", refusal.Code, row.code)
				equal(t, "the lease told", refusal.Lease, o.Lease)
			}
		})
	}
}

// lasting is a lease of "me" with that recorded duration.
func lasting(d time.Duration) *Lease {
	l := planted("me", ms.Add(time.Minute))
	l.Duration = d.Seconds()
	return l
}

func TestVerifyTable(t *testing.T) {
	seven, eight := uint64(7), uint64(8)
	minute := planted("me", ms.Add(time.Minute))
	for _, row := range []struct {
		name  string
		state *Lease
		check Check
		code  string
	}{
		{"absent", nil, Check{Holder: "me"}, CodeAbsent},
		{"held", minute, Check{Holder: "me"}, ""},
		{"held by another", minute, Check{Holder: "you"}, CodeNotHolder},
		{"expired", planted("me", ms), Check{Holder: "me"}, CodeExpired},
		{"expired, another's", planted("me", ms), Check{Holder: "you"}, CodeNotHolder},
		{"fence token equal", minute, Check{Holder: "me", Fence: &seven}, ""},
		{"fence token higher", minute, Check{Holder: "me", Fence: &eight}, CodeFenceMismatch},
		{"fence token before remaining time", minute, Check{Holder: "me", Fence: &eight, MinRemaining: time.Hour}, CodeFenceMismatch},
		{"exactly as much left as asked", minute, Check{Holder: "me", MinRemaining: time.Minute}, ""},
		{"a nanosecond too little", minute, Check{Holder: "me", MinRemaining: time.Minute + 1}, CodeTooShort},
	} {
		t.Run(row.name, func(t *testing.T) {
			refusal := row.check.decide(seen(t, row.state), ms)
			code := ""
			if refusal != nil {
				code = refusal.Code
			}
			equal(t, "the code", code, row.code)
		})
	}
}

// A lease is held up to the last nanosecond before its expiry, and no longer.
func TestExpiryIsInclusiveToTheNanosecond(t *testing.T) {
	l := seen(t, planted("me", ms)).Lease
	equal(t, "expired a nanosecond before", l.Expired(ms.Add(-1)), false)
	equal(t, "expired at the instant", l.Expired(ms), true)
	equal(t, "expired a nanosecond after", l.Expired(ms.Add(1)), true)
}

// case B18: the zone in which an expiry is written does not matter, nor do its fraction's digits.
func TestEveryZonedFormGivesTheSameExpiry(t *testing.T) {
	for _, form := range []string{
		"2026-11-30T05:13:22Z", "2026-11-29T21:13:22-08:00", "2026-11-30T10:43:22+05:30", "2026-11-30T05:13:22.000000000Z",
		"2026-11-30T05:13:22.0+00:00",
	} {
		content := strings.Replace(string(planted("me", ms).Encode()), FormatTime(ms), form, 1)
		l, err := Parse([]byte(content))
		if err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		equal(t, form, l.ExpiresAt, time.Date(2026, 11, 30, 5, 13, 22, 0, time.UTC))
		equal(t, form+" for display", memberOf(t, l, "expiresAt"), "2026-11-30T05:13:22.000Z")
	}
}

func memberOf(t *testing.T, l *Lease, name string) string {
	t.Helper()
	s, err := l.Members().String(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAcquireWritesTheTermsAndCutsToMilliseconds(t *testing.T) {
	c, refusal := terms{holderID: "h", token: "k", hostname: "vm", label: "nightly", duration: 90 * time.Second}.decide(Observed{}, t0)
	if refusal != nil {
		t.Fatal(refusal)
	}
	want := `{
  "holderId": "h",
  "hostname": "vm",
  "acquiredAt": "2026-11-30T05:03:22.123Z",
  "expiresAt": "2026-11-30T05:04:52.123Z",
  "durationSeconds": 90,
  "token": "k",
  "label": "nightly"
}
`
	equal(t, "the file", string(c.publish.Encode()), want)
	c.publish.Fence, c.publish.Label = 42, ""
	equal(t, "the file", string(c.publish.Encode()), strings.Replace(want, `"label": "nightly"`, `"fence": 42`, 1))
}

// renewed decides a renewal at a time and returns what it publishes.
func renewed(t *testing.T, o Observed, r renewal, now time.Time) *Lease {
	t.Helper()
	r.holderID, r.token = o.Lease.HolderID, "fresh"
	c, refusal := r.decide(o, now)
	if refusal != nil {
		t.Fatal(refusal)
	}
	return c.publish
}

// Whatever the clock did since, and however short the term is, a renewal moves the expiry forward.
func TestRenewStrictlyIncreasesTheExpiry(t *testing.T) {
	expires := ms.Add(time.Hour)
	micro := planted("me", expires)
	content := strings.Replace(string(micro.Encode()), FormatTime(expires), expires.Format("2006-01-02T15:04:05.000")+"999999Z", 1)
	parsed, err := Parse([]byte(content))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name     string
		state    Observed
		duration time.Duration
		now      time.Time
		want     time.Time
	}{
		{"the ordinary case", seen(t, planted("me", expires)), 0, expires.Add(-time.Second), expires.Add(899 * time.Second)},
		{"the clock is cut", seen(t, planted("me", expires)), 0, expires.Add(-time.Nanosecond), expires.Add(900*time.Second - time.Millisecond)},
		{"the clock went back an hour", seen(t, planted("me", expires)), 0, expires.Add(-time.Hour), expires.Add(time.Millisecond)},
		{"the clock went back to 1970", seen(t, planted("me", expires)), 0, time.Unix(0, 0), expires.Add(time.Millisecond)},
		{"a shorter term", seen(t, planted("me", expires)), time.Second, expires.Add(-time.Minute), expires.Add(time.Millisecond)},
		{"exactly the old expiry", seen(t, planted("me", expires)), time.Minute, expires.Add(-time.Minute), expires.Add(time.Millisecond)},
		{"an expiry with nanoseconds", Observed{Lease: parsed, Bytes: []byte(content)}, time.Second, expires.Add(-time.Minute), expires.Add(time.Millisecond)},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := renewed(t, row.state, renewal{duration: row.duration}, row.now)
			equal(t, "the expiry", l.ExpiresAt, row.want)
			if !seen(t, l).Lease.ExpiresAt.After(row.state.Lease.ExpiresAt) {
				t.Error("the expiry in the file does not increase")
			}
		})
	}
}

func TestRenewRefusesAnExpiryThatNoFileMayCarry(t *testing.T) {
	last := time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC)
	for _, row := range []struct {
		name string
		l    *Lease
		now  time.Time
		code string
	}{
		{"one millisecond before the end", planted("me", last.Add(-time.Millisecond)), ms, ""},
		{"at the end", planted("me", last), ms, CodeDurationOutOfRange},
		{"the clock is near the end", planted("me", last), last.Add(-time.Minute), CodeDurationOutOfRange},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, refusal := renewal{holderID: "me", token: "fresh"}.decide(seen(t, row.l), row.now)
			if row.code == "" {
				if refusal != nil {
					t.Fatal(refusal.Code)
				}
				equal(t, "the expiry", c.publish.ExpiresAt, last)
				return
			}
			if refusal == nil {
				t.Fatalf("permitted until %s", c.publish.ExpiresAt)
			}
			equal(t, "the code", refusal.Code, row.code)
		})
	}
}

// A renewal writes three members anew: the token, the expiry and, when asked, the duration. All else, of whatever
// program, keeps its place and its bytes.
func TestRenewKeepsEverythingElse(t *testing.T) {
	const file = `{"vendor": {"deep": [1, 2.50, "\u00e9"]}, "token": "old",
  "fence": 41, "label": "mine", "expiresAt": "2026-11-30T07:00:00+01:00", "holderId": "me",
  "zeta": null, "durationSeconds": 1800, "acquiredAt": "long ago", "hostname": "vm", "alpha": 1e400}`
	parsed, err := Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	l := renewed(t, Observed{Lease: parsed, Bytes: []byte(file)}, renewal{}, ms)
	want := `{
  "vendor": {
    "deep": [
      1,
      2.50,
      "é"
    ]
  },
  "token": "fresh",
  "fence": 41,
  "label": "mine",
  "expiresAt": "2026-11-30T06:00:00.001Z",
  "holderId": "me",
  "zeta": null,
  "durationSeconds": 1800,
  "acquiredAt": "long ago",
  "hostname": "vm",
  "alpha": 1e400
}
`
	equal(t, "the file", string(l.Encode()), want)
	equal(t, "the lease that was read", parsed.Token, "old")

	changed := renewed(t, Observed{Lease: parsed, Bytes: []byte(file)}, renewal{duration: 3 * time.Hour}, ms)
	want = strings.Replace(want, "06:00:00.001Z", "08:03:22.123Z", 1)
	equal(t, "the file with --duration", string(changed.Encode()), strings.Replace(want, "1800", "10800", 1))
}

// A lease of another implementation has no fence token, and a renewal does not give it one.
func TestRenewAddsNoFenceToken(t *testing.T) {
	theirs := planted("me", ms.Add(time.Minute))
	theirs.Fence = 0
	l := renewed(t, seen(t, theirs), renewal{}, ms)
	if strings.Contains(string(l.Encode()), "fence") {
		t.Errorf("the file has a fence token:\n%s", l.Encode())
	}
}
