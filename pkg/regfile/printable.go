package regfile

import (
	"strconv"
	"unicode"
	"unicode/utf8"
)

// Printable returns s for use in one line of text: as it is when every rune prints, else quoted and escaped.
func Printable(s string) string {
	if !utf8.ValidString(s) {
		return strconv.QuoteToASCII(s)
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return strconv.QuoteToASCII(s)
		}
	}
	return s
}
