package procid

import (
	"strconv"
	"strings"
)

// Scheme tells the kinds of start key apart.
type Scheme string

// The schemes. Of linux, darwin and freebsd this package mints the one of the system it runs on; the legacy ones are other
// programs', read and never written.
const (
	SchemeLinux       Scheme = "linux"
	SchemeDarwin      Scheme = "darwin"
	SchemeFreeBSD     Scheme = "freebsd"
	SchemeLegacyTicks Scheme = "legacy-ticks" // linux:<ticks>
	SchemeLegacyPS    Scheme = "legacy-ps"    // ps:<text>
	SchemeUnknown     Scheme = "unknown"
)

// weakBoot stands for a boot id that could not be trusted.
const weakBoot = "?"

// Key is a start key taken apart.
type Key struct {
	Scheme Scheme
	Ticks  uint64 // in both linux schemes
	Start  string // seconds.microseconds, in darwin and freebsd
	Boot   string // linux: a UUID, or "?" in a weak key; darwin, freebsd: a text
	NS     uint64 // linux: inode of the writer's pid namespace
}

// Weak reports whether the key's boot is unknown.
func (k Key) Weak() bool { return k.Boot == weakBoot }

// ParseKey takes a start key apart; what it does not know has SchemeUnknown.
func ParseKey(s string) Key {
	scheme, rest, _ := strings.Cut(s, ":")
	key, ok := Key{}, false
	switch scheme {
	case "linux":
		key, ok = parseLinux(rest)
	case "darwin", "freebsd":
		key, ok = parseBSD(Scheme(scheme), rest)
	case "ps":
		key, ok = Key{Scheme: SchemeLegacyPS}, isLine(rest)
	}
	if !ok {
		return Key{Scheme: SchemeUnknown}
	}
	return key
}

// parseLinux reads TICKS or TICKS@BOOT/NAMESPACE. The numbers of the second are as this package writes them, so that equal
// keys are equal texts.
func parseLinux(s string) (Key, bool) {
	digits, place, ours := strings.Cut(s, "@")
	ticks, ok := number(digits)
	if !ours {
		return Key{Scheme: SchemeLegacyTicks, Ticks: ticks}, ok
	}
	boot, inode, _ := strings.Cut(place, "/")
	ns, nsOK := number(inode)
	ok = ok && nsOK && (digits == "0" || digits[0] != '0') && inode[0] != '0' && (boot == weakBoot || isUUID(boot))
	return Key{Scheme: SchemeLinux, Ticks: ticks, Boot: boot, NS: ns}, ok
}

// parseBSD reads SECONDS.MICROSECONDS@BOOT.
func parseBSD(scheme Scheme, s string) (Key, bool) {
	start, boot, _ := strings.Cut(s, "@")
	seconds, micros, _ := strings.Cut(start, ".")
	ok := isDigits(seconds) && isDigits(micros) && isLine(boot)
	return Key{Scheme: scheme, Start: start, Boot: boot}, ok
}

// number reads 1 to 19 digits, as many as any 64 bits hold.
func number(digits string) (uint64, bool) {
	if len(digits) > 19 || !isDigits(digits) {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// isUUID accepts the kernel's form: lower-case hexadecimal in groups of 8, 4, 4, 4 and 12.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch hyphen := i == 8 || i == 13 || i == 18 || i == 23; {
		case hyphen && c != '-':
			return false
		case !hyphen && (c < '0' || c > '9') && (c < 'a' || c > 'f'):
			return false
		}
	}
	return true
}

func isLine(s string) bool { return s != "" && !strings.Contains(s, "\n") }

// String is the key as it is recorded, of a scheme that this package mints.
func (k Key) String() string {
	if k.Scheme == SchemeDarwin || k.Scheme == SchemeFreeBSD {
		return string(k.Scheme) + ":" + k.Start + "@" + k.Boot
	}
	return "linux:" + strconv.FormatUint(k.Ticks, 10) + "@" + k.Boot + "/" + strconv.FormatUint(k.NS, 10)
}
