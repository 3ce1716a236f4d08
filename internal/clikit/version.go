package clikit

import (
	"fmt"
	"runtime/debug"
	"strings"
)

// version prints the version and returns the exit status.
func (r *run) version() int {
	info, _ := debug.ReadBuildInfo()
	if err := write(versionOf(r.Name, info)); err != nil {
		return r.refuse(&undeliverable{err: err})
	}
	return statusOK
}

// versionOf is a program's version in a line: the module's, or the revision that it was built from, and the compiler's.
func versionOf(name string, info *debug.BuildInfo) string {
	if info == nil {
		return name + " of an unknown version\n"
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	words := []string{name, info.Main.Version}
	if revision := settings["vcs.revision"]; info.Main.Version == "(devel)" && revision != "" {
		if settings["vcs.modified"] == "true" {
			revision += "+dirty"
		}
		words = append(words, revision)
	}
	return fmt.Sprintf("%s (%s %s/%s)\n", strings.Join(words, " "), info.GoVersion, settings["GOOS"], settings["GOARCH"])
}
