package clikit

import (
	"runtime/debug"
	"testing"
)

func TestVersionIsTheModulesOrTheRevision(t *testing.T) {
	settings := []debug.BuildSetting{{Key: "GOOS", Value: "linux"}, {Key: "GOARCH", Value: "amd64"}}
	revision := append(settings, debug.BuildSetting{Key: "vcs.revision", Value: "98f2466a"}, debug.BuildSetting{Key: "vcs.modified", Value: "true"})
	for want, info := range map[string]*debug.BuildInfo{
		"x v1.2.3 (go1.26 linux/amd64)\n":                 {GoVersion: "go1.26", Main: debug.Module{Version: "v1.2.3"}, Settings: revision},
		"x (devel) 98f2466a+dirty (go1.26 linux/amd64)\n": {GoVersion: "go1.26", Main: debug.Module{Version: "(devel)"}, Settings: revision},
		"x (devel) (go1.26 linux/amd64)\n":                {GoVersion: "go1.26", Main: debug.Module{Version: "(devel)"}, Settings: settings},
		"x of an unknown version\n":                       nil,
	} {
		if got := versionOf("x", info); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestFlagsAreNamedWithTheirDashes(t *testing.T) {
	for said, want := range map[string]string{
		"flag provided but not defined: -bogus":                    "flag provided but not defined: --bogus",
		"flag provided but not defined: -q":                        "flag provided but not defined: -q",
		"flag needs an argument: -duration":                        "flag needs an argument: --duration",
		`invalid value "a -b" for flag -duration: it must be`:      `invalid value "a -b" for flag --duration: it must be`,
		`invalid value "for flag -x: \"" for flag -E: parse error`: `invalid value "for flag -x: \"" for flag -E: parse error`,
		`invalid boolean value "maybe" for -observe: parse error`:  `invalid boolean value "maybe" for --observe: parse error`,
		"something else about -duration":                           "something else about -duration",
	} {
		if got := dashed(said); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
