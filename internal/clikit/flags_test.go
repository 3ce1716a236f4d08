package clikit

import (
	"strings"
	"testing"
	"time"
)

func TestDurations(t *testing.T) {
	const least, most = time.Second, 30 * 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"900": 15 * time.Minute, "900s": 15 * time.Minute, "15m": 15 * time.Minute, "15m0s": 15 * time.Minute, "1": time.Second,
		"1s": time.Second, "1.5": 1500 * time.Millisecond, "1h30m": 90 * time.Minute, "1000ms": time.Second, "720h": most,
		"2592000": most, "1e3": 1000 * time.Second, "0.25h": 15 * time.Minute,
		"30d": most, "1d": 24 * time.Hour, "1d12h30m": 36*time.Hour + 30*time.Minute,
	} {
		into := time.Minute
		if err := (&durationValue{&into, least, most}).Set(text); err != nil || into != want {
			t.Errorf("%s: %s, %v, want %s", text, into, err, want)
		}
	}
	// case B19: what overflows, what is negative, and what is nothing.
	for _, text := range []string{
		"-1s", "-1", "0", "0s", "-0", "1ns", "999ms", "0.9", "292y", "31d", "0d", "-1d", "1.5d", "d", "1d-1h", "1d+1h", "1d1", "1dd", "1h1d", "99999999999d", "9999999h", "1e400", "-1e400", "1e18", "9223372036", "9223372037",
		"2592001", "720h1ns", "NaN", "nan", "Inf", "-Inf", "infinity", "", " ", "1 s", " 1", "s", "m15", "fifteen", "1,5", "١",
		"99999999999999999999999999", "9223372036854775808ns", "2562048h", "1\n", "1s\x00",
	} {
		into := time.Minute
		err := (&durationValue{&into, least, most}).Set(text)
		if err == nil || into != time.Minute {
			t.Errorf("%q: %s, %v", text, into, err)
			continue
		}
		if want := "it must be from 1s to 30 days; write 15m, 900s, 2d or plain seconds"; err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestADurationIsShownAsItIsWritten(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 15 * time.Minute: "15m", 90 * time.Minute: "1h30m", time.Hour: "1h", 24 * time.Hour: "1 days", 30 * 24 * time.Hour: "30 days",
		10 * time.Second: "10s", 1500 * time.Millisecond: "1.5s", 20*time.Minute + 10*time.Second: "20m10s", 100 * time.Minute: "1h40m",
	} {
		if got := shortSpan(d); got != want {
			t.Errorf("%d: %s, want %s", d, got, want)
		}
	}
}

func TestSizes(t *testing.T) {
	const most = 1 << 30
	for text, want := range map[string]int64{
		"1": 1, "1048576": 1 << 20, "1KiB": 1 << 10, "64KiB": 64 << 10, "1MiB": 1 << 20, "1GiB": most, "1073741824": most, "007": 7,
	} {
		into := int64(-1)
		if err := (&sizeValue{&into, most}).Set(text); err != nil || into != want {
			t.Errorf("%s: %d, %v, want %d", text, into, err, want)
		}
	}
	for _, text := range []string{
		"", "0", "-1", "0KiB", "-1MiB", "1.5MiB", "1073741825", "2GiB", "1025MiB", "9223372036854775807", "9223372036854775808",
		"9223372036854775807GiB", "8589934592GiB", "1KB", "1kib", "1 KiB", "KiB", "0x10", "1e3", "1_000", "MiBMiB", "1TiB",
	} {
		into := int64(-1)
		err := (&sizeValue{&into, most}).Set(text)
		if err == nil || into != -1 {
			t.Errorf("%q: %d, %v", text, into, err)
		} else if want := "it must be from 1 to 1GiB; write bytes, KiB, MiB or GiB"; err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 1: "1", 1023: "1023", 1024: "1KiB", 1025: "1025", 3 << 20: "3MiB", 1<<30 + 1<<20: "1025MiB", 2 << 30: "2GiB"} {
		if got := sizeText(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestWordsAndTexts(t *testing.T) {
	into := "before"
	words := &wordValue{&into, []string{"held", "free"}}
	for _, bad := range []string{"", "Held", "held ", "hel"} {
		if err := words.Set(bad); err == nil || err.Error() != "it must be one of held, free" || into != "before" {
			t.Errorf("%q: %q, %v", bad, into, err)
		}
	}
	if err := words.Set("free"); err != nil || into != "free" || words.String() != "free" {
		t.Errorf("%q, %v", into, err)
	}
	text := &textValue{&into}
	if err := text.Set(""); err == nil || into != "free" {
		t.Errorf("%q, %v", into, err)
	}
	if err := text.Set(" x"); err != nil || into != " x" {
		t.Errorf("%q, %v", into, err)
	}
}

func TestFormats(t *testing.T) {
	for _, exports := range []bool{false, true} {
		for _, text := range []string{"json", "text", "sh", "", "JSON", "yaml"} {
			var into Format
			err := (&formatValue{&into, exports, false}).Set(text)
			valid := text == "json" || text == "text" || text == "sh" && exports
			if valid != (err == nil) || valid && into != Format(text) || !valid && into != "" {
				t.Errorf("%q, exports %v: %q, %v", text, exports, into, err)
			}
		}
		if usage := (&formatValue{nil, exports, false}).usage(); strings.Contains(usage, "sh") != exports {
			t.Errorf("exports %v: %s", exports, usage)
		}
	}
}
