// Package fsdoctor is the program of that name: what in a directory would hang, mislead or block.
package fsdoctor

import "holdfast/internal/clikit"

// Main runs fsdoctor and returns its exit status.
func Main(env clikit.Env) int { return Program().Main(env) }

// Program describes the program.
func Program() *clikit.Program {
	p := &clikit.Program{
		Name:    "fsdoctor",
		Offload: true,
		Usage:   "the FIFO-safe doctor: look at files without ever opening what is not a regular file",
		Description: `A named pipe, a device or a socket where a file is expected makes an ordinary reader hang, or acts
when it is opened. fsdoctor establishes the type first.

Example: which of these are no regular files?

   fsdoctor classify state/* | jq -r 'select(.kind != "regular") | "\(.kind) \(.path)"'`,
	}
	p.Verbs = []*clikit.Verb{
		checkVerb(), scanVerb(), classifyVerb(), catVerb(),
		clikit.SchemaVerb(p, "classify"),
	}
	return p
}
