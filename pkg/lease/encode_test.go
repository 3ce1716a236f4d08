package lease

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/pkg/strictjson"
)

// whole is a lease file with every member; the rows below break it at one place.
const whole = `{
  "holderId": "h",
  "hostname": "vm",
  "acquiredAt": "2026-11-30T05:03:22.123Z",
  "expiresAt": "2026-11-30T05:18:22.123Z",
  "durationSeconds": 900,
  "token": "k",
  "fence": 42,
  "label": "nightly"
}
`

func TestParseReadsWhatEncodeWrote(t *testing.T) {
	l, err := Parse([]byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the expiry", l.ExpiresAt, time.Date(2026, 11, 30, 5, 18, 22, 123e6, time.UTC))
	equal(t, "the fence token", l.Fence, 42)
	equal(t, "the file", string(l.Encode()), whole)
	equal(t, "renewBy", l.RenewBy(), time.Date(2026, 11, 30, 5, 10, 52, 123e6, time.UTC))
}

// The file is what JSON.stringify(lease, null, 2) and a newline give.
func TestEncodeEscapesAsECMAScriptDoes(t *testing.T) {
	l := planted("me", ms)
	l.Label = "<&>\u2028\"\\\b\f\n\r\t\x01\x7f日本"
	want := `"label": "<&>` + "\u2028" + `\"\\\b\f\n\r\t\u0001` + "\x7f日本" + `"`
	if content := string(l.Encode()); !strings.Contains(content, want) {
		t.Errorf("%s\nhas no %s", content, want)
	}
}

// A host name is whatever bytes the system has; no byte of it may keep anybody from taking or giving back a lease.
func TestTextThatIsNotUTF8IsReplacedAndNoReasonToFail(t *testing.T) {
	l := planted("me", ms)
	l.Hostname, l.Label = "vm\xff", "a\xc3"
	back := seen(t, l).Lease
	equal(t, "the hostname", back.Hostname, "vm\uFFFD")
	equal(t, "the label", back.Label, "a\uFFFD")
}

func TestCorruptFilesAreNamed(t *testing.T) {
	with := func(old, new string) string {
		if !strings.Contains(whole, old) {
			panic(old)
		}
		return strings.Replace(whole, old, new, 1)
	}
	without := func(name string) string {
		var kept []string
		for line := range strings.Lines(whole) {
			if !strings.Contains(line, `"`+name+`"`) {
				kept = append(kept, line)
			}
		}
		return strings.Join(kept, "")
	}
	for _, row := range []struct {
		name, content string
		fault         strictjson.Fault
	}{
		{"empty", "", strictjson.Empty},
		{"blank", " \n\t", strictjson.Empty},
		{"NUL-filled", strings.Repeat("\x00", 300), strictjson.NulFilled},
		{"byte order mark", "\ufeff" + whole, strictjson.BOM},
		{"carriage returns", strings.ReplaceAll(whole, "\n", "\r\n"), strictjson.CRLF},
		{"cut off", whole[:100], strictjson.Truncated},
		{"two objects", whole + whole, strictjson.TrailingGarbage},
		{"a word after it", whole + "x", strictjson.TrailingGarbage},
		{"an array", "[" + whole + "]", strictjson.NotObject},
		{"a member twice", with(`"token": "k"`, `"token": "k", "token": "k"`), strictjson.DuplicateKey},
		{"a foreign member twice", with(`"token": "k"`, `"x": 1, "token": "k", "x": 2`), strictjson.DuplicateKey},
		{"no holderId", without("holderId"), strictjson.Shape},
		{"no hostname", without("hostname"), strictjson.Shape},
		{"no acquiredAt", without("acquiredAt"), strictjson.Shape},
		{"no expiresAt", without("expiresAt"), strictjson.Shape},
		{"no durationSeconds", without("durationSeconds"), strictjson.Shape},
		{"no token", without("token"), strictjson.Shape},
		{"holderId empty", with(`"h"`, `""`), strictjson.Shape},
		{"holderId null", with(`"h"`, `null`), strictjson.Shape},
		{"holderId of another case", with(`"holderId"`, `"HolderId"`), strictjson.Shape},
		{"token a number", with(`"k"`, `7`), strictjson.Shape},
		{"expiry a number", with(`"2026-11-30T05:18:22.123Z"`, `1796015902`), strictjson.Shape},
		{"expiry without a zone", with(`18:22.123Z`, `18:22.123`), strictjson.Shape},
		{"expiry with a space", with(`30T05:18`, `30 05:18`), strictjson.Shape},
		{"expiry a date", with(`2026-11-30T05:18:22.123Z`, `2026-11-30`), strictjson.Shape},
		{"expiry on no day", with(`2026-11-30T05:18`, `2026-11-31T05:18`), strictjson.Shape},
		{"expiry in year 0", with(`"2026-11-30T05:18`, `"0000-11-30T05:18`), strictjson.Shape},
		{"expiry a second before 1970", with(`2026-11-30T05:18:22.123Z`, `1969-12-31T23:59:59Z`), strictjson.Shape},
		{"expiry before 1970 by its zone", with(`2026-11-30T05:18:22.123Z`, `1970-01-01T00:30:00+01:00`), strictjson.Shape},
		{"expiry in year 10000", with(`2026-11-30T05:18`, `10000-11-30T05:18`), strictjson.Shape},
		{"expiry after 9999 by its zone", with(`2026-11-30T05:18:22.123Z`, `9999-12-31T23:59:59-01:00`), strictjson.Shape},
		{"duration 0", with(`900`, `0`), strictjson.Shape},
		{"duration negative", with(`900`, `-900`), strictjson.Shape},
		{"duration not finite", with(`900`, `1e400`), strictjson.Shape},
		{"duration text", with(`900`, `"900"`), strictjson.Shape},
		{"fence negative", with(`42`, `-1`), strictjson.Shape},
		{"fence with a fraction", with(`42`, `1.5`), strictjson.Shape},
		{"fence 2^53", with(`42`, `9007199254740992`), strictjson.Shape},
		{"fence text", with(`42`, `"42"`), strictjson.Shape},
		{"label a number", with(`"nightly"`, `1`), strictjson.Shape},
		{"label null", with(`"nightly"`, `null`), strictjson.Shape},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := Parse([]byte(row.content))
			var fault *strictjson.Error
			if !errors.As(err, &fault) {
				t.Fatalf("got %v, want a fault", err)
			}
			equal(t, "the fault", fault.Fault, row.fault)
		})
	}
}

func TestParseAcceptsTheBounds(t *testing.T) {
	for name, content := range map[string]string{
		"the first instant":  strings.Replace(whole, "2026-11-30T05:18:22.123Z", "1970-01-01T00:00:00Z", 1),
		"the last instant":   strings.Replace(whole, "2026-11-30T05:18:22.123Z", "9999-12-31T23:59:59.999999999Z", 1),
		"fence 0":            strings.Replace(whole, "42", "0", 1),
		"fence 2^53-1":       strings.Replace(whole, "42", "9007199254740991", 1),
		"fence as a float":   strings.Replace(whole, "42", "4.2e1", 1),
		"a huge duration":    strings.Replace(whole, "900", "1e300", 1),
		"a tiny duration":    strings.Replace(whole, "900", "1e-300", 1),
		"one line":           strings.ReplaceAll(whole, "\n", ""),
		"an empty label":     strings.Replace(whole, "nightly", "", 1),
		"an empty token":     strings.Replace(whole, `"k"`, `""`, 1),
		"an odd acquiredAt":  strings.Replace(whole, "2026-11-30T05:03:22.123Z", "yesterday", 1),
		"a foreign member":   strings.Replace(whole, `"token"`, `"x": {"y": [null]}, "token"`, 1),
		"no fence, no label": strings.Replace(strings.Replace(whole, `"fence": 42,`, "", 1), `"k",`, `"k", "z": 1,`, 1),
	} {
		l, err := Parse([]byte(content))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		again, err := Parse(l.Encode())
		if err != nil {
			t.Errorf("%s: what Encode wrote: %v", name, err)
			continue
		}
		equal(t, name+": a second round", string(again.Encode()), string(l.Encode()))
		if by := l.RenewBy(); by.After(l.ExpiresAt) || by.Year() < 1900 {
			t.Errorf("%s: renewBy %v", name, by)
		}
	}
}

// What is shown is in UTC with milliseconds, whatever the file has; an acquiredAt that is no time is shown as it is.
func TestMembersShowTimesInUTCWithMilliseconds(t *testing.T) {
	for _, row := range []struct{ name, acquired, expires, wantAcquired, wantExpires string }{
		{"ours", "2026-11-30T05:03:22.123Z", "2026-11-30T05:18:22.123Z", "2026-11-30T05:03:22.123Z", "2026-11-30T05:18:22.123Z"},
		{"another zone", "2026-11-30T00:03:22-05:00", "2026-11-30T10:48:22.1239+05:30", "2026-11-30T05:03:22.000Z", "2026-11-30T05:18:22.123Z"},
		{"no time at all", "yesterday", "2026-11-30T05:18:22Z", "yesterday", "2026-11-30T05:18:22.000Z"},
		{"past the last year by its zone", "9999-12-31T23:59:59-01:00", "2026-11-30T05:18:22Z", "9999-12-31T23:59:59-01:00", "2026-11-30T05:18:22.000Z"},
	} {
		t.Run(row.name, func(t *testing.T) {
			content := strings.Replace(whole, "2026-11-30T05:18:22.123Z", row.expires, 1)
			content = strings.Replace(content, "2026-11-30T05:03:22.123Z", row.acquired, 1)
			l, err := Parse([]byte(content))
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "acquiredAt", memberOf(t, l, "acquiredAt"), row.wantAcquired)
			equal(t, "expiresAt", memberOf(t, l, "expiresAt"), row.wantExpires)
			equal(t, "the lease itself", l.AcquiredAt, row.acquired)
		})
	}
}

func TestFormatTimeIsUTCWithThreeDigits(t *testing.T) {
	zone := time.FixedZone("", -8*3600)
	for _, row := range []struct {
		t    time.Time
		want string
	}{
		{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), "2026-01-02T03:04:05.000Z"},
		{time.Date(2026, 1, 2, 3, 4, 5, 999_999_999, time.UTC), "2026-01-02T03:04:05.999Z"},
		{time.Date(2026, 12, 31, 20, 0, 0, 1e6, zone), "2027-01-01T04:00:00.001Z"},
	} {
		equal(t, row.t.String(), FormatTime(row.t), row.want)
	}
}

// Text for people never carries a control character to the terminal, and is never cut inside a character.
func TestWhoNamesTheHolderForPeople(t *testing.T) {
	for _, row := range []struct {
		name string
		l    Lease
		want string
	}{
		{"a holder", Lease{HolderID: "h"}, "h"},
		{"on a host", Lease{HolderID: "h", Hostname: "vm"}, "h on vm"},
		{"with a label", Lease{HolderID: "h", Hostname: "vm", Label: "nightly build"}, "h (nightly build) on vm"},
		{"a label of 200 characters", Lease{HolderID: "h", Label: strings.Repeat("ä", 200)}, "h (" + strings.Repeat("ä", 200) + ")"},
		{"a label of 201", Lease{HolderID: "h", Label: strings.Repeat("ä", 201)}, "h (" + strings.Repeat("ä", 200) + ")"},
	} {
		t.Run(row.name, func(t *testing.T) { equal(t, "the text", row.l.Who(), row.want) })
	}
	hostile := Lease{HolderID: "h\x1b[2J", Hostname: "vm\n", Label: "\x07"}
	if text := hostile.Who(); strings.ContainsAny(text, "\x1b\n\x07") {
		t.Errorf("control characters in %q", text)
	}
}

func TestSpansForPeople(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 1500 * time.Microsecond: "2ms", 9999 * time.Millisecond: "9.999s", 10400 * time.Millisecond: "10s",
		-1500 * time.Millisecond: "-1.5s", 26*time.Hour + 100*time.Millisecond: "26h0m0s",
	} {
		equal(t, fmt.Sprintf("%d ns", d), span(d), want)
	}
}
