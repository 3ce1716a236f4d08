package clikit

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
)

// SizeFlag is a flag for a number of bytes from 1 to most: plain, or with KiB, MiB or GiB.
func SizeFlag(name, usage string, into *int64, most int64) cli.Flag {
	return &cli.GenericFlag{Name: name, Usage: usage, Value: &sizeValue{into, most}}
}

type sizeValue struct {
	into *int64
	most int64
}

var sizeUnits = []struct {
	suffix string
	bytes  int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1}}

// Set parses the flag's text.
func (v *sizeValue) Set(text string) error {
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n < 1 || n > v.most/u.bytes {
			break
		}
		*v.into = n * u.bytes
		return nil
	}
	return fmt.Errorf("it must be from 1 to %s; write bytes, KiB, MiB or GiB", sizeText(v.most))
}

func (v *sizeValue) String() string {
	if v.into == nil {
		return ""
	}
	return sizeText(*v.into)
}

func sizeText(n int64) string {
	for _, u := range sizeUnits {
		if n >= u.bytes && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.suffix
		}
	}
	return "0"
}
