package clikit

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

// DurationFlag is a flag for a span of time from least to most: 15m, 900s, 2d or plain seconds.
func DurationFlag(name, usage string, into *time.Duration, least, most time.Duration) cli.Flag {
	return &cli.GenericFlag{Name: name, Usage: usage, Value: &durationValue{into, least, most}}
}

type durationValue struct {
	into        *time.Duration
	least, most time.Duration
}

// Set parses the flag's text.
func (v *durationValue) Set(text string) error {
	d, err := parseDuration(text)
	if err != nil || d < v.least || d > v.most {
		return fmt.Errorf("it must be from %s to %s; write 15m, 900s, 2d or plain seconds", shortSpan(v.least), shortSpan(v.most))
	}
	*v.into = d
	return nil
}

func (v *durationValue) String() string {
	if v.into == nil || *v.into == 0 {
		return ""
	}
	return shortSpan(*v.into)
}

func parseDuration(text string) (time.Duration, error) {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		const most = 1 << 33 // seconds, within what a Duration holds
		if !(seconds >= 0 && seconds <= most) {
			return 0, strconv.ErrRange
		}
		return time.Duration(seconds * float64(time.Second)), nil
	}
	count, rest, inDays := strings.Cut(text, "d")
	if !inDays {
		return time.ParseDuration(text)
	}
	days, err := strconv.ParseUint(count, 10, 16)
	if err != nil || rest == "" {
		return time.Duration(days) * 24 * time.Hour, err
	}
	d, err := time.ParseDuration(rest)
	if d < 0 || rest[0] == '+' {
		err = strconv.ErrSyntax
	}
	return time.Duration(days)*24*time.Hour + d, err
}

// shortSpan is a duration without the zero units that time.Duration prints.
func shortSpan(d time.Duration) string {
	if d > 0 && d%(24*time.Hour) == 0 {
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// TextFlag is a flag whose value must not be empty: an unset shell variable must not pass for the default.
func TextFlag(name, usage, def string, into *string) cli.Flag {
	return &cli.GenericFlag{Name: name, Usage: usage, DefaultText: def, Value: &textValue{into}}
}

type textValue struct{ into *string }

// Set accepts anything but nothing.
func (v *textValue) Set(text string) error {
	if text == "" {
		return fmt.Errorf("it must not be empty")
	}
	*v.into = text
	return nil
}

func (v *textValue) String() string { return "" }

// WordFlag is a flag whose value is one of the given words.
func WordFlag(name, usage string, into *string, words ...string) cli.Flag {
	return &cli.GenericFlag{Name: name, Usage: usage + ": " + strings.Join(words, ", "), Value: &wordValue{into, words}}
}

type wordValue struct {
	into  *string
	words []string
}

// Set accepts one of the words.
func (v *wordValue) Set(text string) error {
	for _, w := range v.words {
		if text == w {
			*v.into = text
			return nil
		}
	}
	return fmt.Errorf("it must be one of %s", strings.Join(v.words, ", "))
}

func (v *wordValue) String() string {
	if v.into == nil {
		return ""
	}
	return *v.into
}

// formatValue is the value of --format.
type formatValue struct {
	into    *Format
	exports bool
	script  bool
}

func (v *formatValue) usage() string {
	switch {
	case v.script:
		return "`json|text|sh`: JSON lines, text for people, or a script to review"
	case v.exports:
		return "`json|text|sh`: JSON lines, text for people, or exports for eval"
	}
	return "`json|text`: JSON lines, or text for people"
}

// Set accepts the verb's formats.
func (v *formatValue) Set(text string) error {
	switch Format(text) {
	case JSON, Text:
	case Shell:
		if !v.exports && !v.script {
			return fmt.Errorf("this verb exports nothing; it must be json or text")
		}
	default:
		return fmt.Errorf("it must be json, text or sh")
	}
	*v.into = Format(text)
	return nil
}

func (v *formatValue) String() string { return "" }
