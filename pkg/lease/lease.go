package lease

import (
	"math"
	"time"

	"holdfast/pkg/strictjson"
)

// MaxFence is the highest fence token, 2^53 − 1: the largest integer that every JSON reader keeps exactly.
const MaxFence = 1<<53 - 1

// timeLayout is RFC 3339 in UTC with milliseconds, as every time is written.
const timeLayout = "2006-01-02T15:04:05.000Z"

// FormatTime renders a time as lease files and objects carry it: RFC 3339, UTC, milliseconds cut off.
func FormatTime(t time.Time) string { return t.UTC().Format(timeLayout) }

// Lease is the content of a lease file.
type Lease struct {
	HolderID   string
	Hostname   string
	AcquiredAt string // as recorded; information only
	ExpiresAt  time.Time
	Duration   float64 // seconds, > 0
	Token      string
	Fence      uint64 // 0 in a lease that another implementation wrote
	Label      string

	members strictjson.Object // everything that was in the file, unknown members included
}

// Parse reads a lease file. The error is a *strictjson.Error.
func Parse(content []byte) (*Lease, error) {
	o, err := strictjson.Parse(content)
	if err != nil {
		return nil, err
	}
	l := &Lease{members: o}
	for _, f := range []struct {
		name string
		into *string
	}{{"holderId", &l.HolderID}, {"hostname", &l.Hostname}, {"acquiredAt", &l.AcquiredAt}, {"token", &l.Token}} {
		if *f.into, err = o.String(f.name); err != nil {
			return nil, err
		}
	}
	if l.HolderID == "" {
		return nil, strictjson.ShapeError("has an empty %q", "holderId")
	}
	if l.ExpiresAt, err = parseExpiry(o); err != nil {
		return nil, err
	}
	if l.Duration, err = o.Number("durationSeconds"); err != nil {
		return nil, err
	}
	if l.Duration <= 0 {
		return nil, strictjson.ShapeError("has a %q that is not greater than 0", "durationSeconds")
	}
	if err := l.parseAdditions(o); err != nil {
		return nil, err
	}
	return l, nil
}

func parseExpiry(o strictjson.Object) (time.Time, error) {
	text, err := o.String("expiresAt")
	if err != nil {
		return time.Time{}, err
	}
	var t time.Time
	if err := t.UnmarshalText([]byte(text)); err != nil {
		return time.Time{}, strictjson.ShapeError("has an %q that is not an RFC 3339 time with a zone", "expiresAt")
	}
	t = t.UTC()
	if t.Year() < 1970 || t.Year() > 9999 {
		return time.Time{}, strictjson.ShapeError("has an %q outside the years 1970 to 9999", "expiresAt")
	}
	return t, nil
}

// parseAdditions reads the members that only this toolkit writes.
func (l *Lease) parseAdditions(o strictjson.Object) (err error) {
	if o.Has("fence") {
		n, err := o.Number("fence")
		if err != nil {
			return err
		}
		if !validFence(n) {
			return strictjson.ShapeError("has a %q that is no whole number from 0 to 2^53-1", "fence")
		}
		l.Fence = uint64(n)
	}
	if o.Has("label") {
		l.Label, err = o.String("label")
	}
	return err
}

// validFence reports whether a number read from a file can be a fence token, or 0 for none.
func validFence(n float64) bool { return n >= 0 && n <= MaxFence && n == math.Trunc(n) }

// Encode returns the file's bytes: the known members in the protocol's order for a new lease; for one that was read, the
// members it was read with, at their places, with the changed values.
func (l *Lease) Encode() []byte {
	o := l.members.Clone()
	o.Set("holderId", l.HolderID)
	o.Set("hostname", l.Hostname)
	o.Set("acquiredAt", l.AcquiredAt)
	o.Set("expiresAt", FormatTime(l.ExpiresAt))
	o.Set("durationSeconds", l.Duration)
	o.Set("token", l.Token)
	if l.Fence > 0 || o.Has("fence") {
		o.Set("fence", l.Fence)
	}
	if l.Label != "" || o.Has("label") {
		o.Set("label", l.Label)
	}
	return o.Indented()
}

// Members returns the lease for display: as in the file, with the times in UTC and milliseconds.
func (l *Lease) Members() strictjson.Object {
	shown := *l
	var t time.Time
	if t.UnmarshalText([]byte(l.AcquiredAt)) == nil && t.UTC().Year() <= 9999 && t.UTC().Year() >= 0 {
		shown.AcquiredAt = FormatTime(t)
	}
	o, err := strictjson.Parse(shown.Encode())
	if err != nil {
		panic(err) // what Encode writes, Parse reads
	}
	return o
}

// Expired is the one comparison of the protocol: a lease whose expiry is now has expired.
func (l *Lease) Expired(now time.Time) bool { return !l.ExpiresAt.After(now) }

// RenewBy is half a duration before the expiry.
func (l *Lease) RenewBy() time.Time { return l.ExpiresAt.Add(-l.term() / 2) }

// term is the duration, cut to what time arithmetic can hold.
func (l *Lease) term() time.Duration {
	const most = 100 * 365 * 24 * time.Hour
	if l.Duration >= most.Seconds() {
		return most
	}
	return time.Duration(l.Duration * float64(time.Second))
}

// The bounds of a duration that can be asked for, and the default.
const (
	MinDuration     = time.Second
	MaxDuration     = 30 * 24 * time.Hour
	DefaultDuration = 900 * time.Second
)

// MaxLabel is the longest label, in characters.
const MaxLabel = 200

// ClipLabel cuts text to the longest label.
func ClipLabel(text string) string { return clip(text, MaxLabel) }

// clip cuts text to at most n characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	runes := []rune(s)
	return string(runes[:min(n, len(runes))])
}
