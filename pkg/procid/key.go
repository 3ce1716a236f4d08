package procid

import (
	"regexp"
	"strconv"
)

// Scheme tells the kinds of start key apart.
type Scheme string

// The schemes. Linux is this package's own on this system; the legacy ones are other programs', read and never written.
const (
	SchemeLinux       Scheme = "linux"
	SchemeOtherSystem Scheme = "other-system" // a key of ours, minted on macOS or FreeBSD
	SchemeLegacyTicks Scheme = "legacy-ticks" // linux:<ticks>
	SchemeLegacyPS    Scheme = "legacy-ps"    // ps:<text>
	SchemeUnknown     Scheme = "unknown"
)

// weakBoot stands for a boot id that could not be trusted.
const weakBoot = "?"

// Key is a start key taken apart.
type Key struct {
	Scheme Scheme
	Ticks  uint64
	Boot   string // a UUID, or "?" in a weak key
	NS     uint64 // inode of the writer's pid namespace
}

// Weak reports whether the key's boot is unknown.
func (k Key) Weak() bool { return k.Boot == weakBoot }

const uuidPattern = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`

// ParseKey takes a start key apart; what it does not know has SchemeUnknown.
func ParseKey(s string) Key {
	match := func(pattern string) []string { return regexp.MustCompile(`^` + pattern + `$`).FindStringSubmatch(s) }
	if m := match(`linux:(0|[1-9][0-9]{0,18})@(` + uuidPattern + `|\?)/([1-9][0-9]{0,18})`); m != nil {
		return Key{Scheme: SchemeLinux, Ticks: number(m[1]), Boot: m[2], NS: number(m[3])}
	}
	if m := match(`linux:([0-9]{1,19})`); m != nil {
		return Key{Scheme: SchemeLegacyTicks, Ticks: number(m[1])}
	}
	if match(`(darwin|freebsd):[0-9]+\.[0-9]+@.+`) != nil {
		return Key{Scheme: SchemeOtherSystem}
	}
	if match(`ps:.+`) != nil {
		return Key{Scheme: SchemeLegacyPS}
	}
	return Key{Scheme: SchemeUnknown}
}

// number parses digits that a pattern has bounded to what fits.
func number(digits string) uint64 {
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// String is the key as it is recorded.
func (k Key) String() string {
	return "linux:" + strconv.FormatUint(k.Ticks, 10) + "@" + k.Boot + "/" + strconv.FormatUint(k.NS, 10)
}
