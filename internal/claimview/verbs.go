package claimview

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"holdfast/internal/clikit"
	"holdfast/pkg/claim"
)

// Commands are what a program calls its verbs about one claim file.
type Commands struct {
	Inspect string // the whole command line
	Clear   string // the same, without what names the claim
	Users   string // who must not be running when one is cleared by force: "program that uses this lease"
}

// LeaseCommands are leasectl's verbs about the claim of a lease file.
func LeaseCommands(lock string) Commands {
	which := "--lock " + clikit.Quote(lock)
	return Commands{Inspect: "leasectl claim inspect " + which, Clear: "leasectl claim clear " + which, Users: "program that uses this lease"}
}

// SessionCommands are fencectl's verbs about the transaction file of a session, which the flag names.
func SessionCommands(which string) Commands {
	return Commands{Inspect: "fencectl tx inspect " + which, Clear: "fencectl tx clear " + which, Users: "program that opens this session"}
}

// Remedy is the command that leads on from a claim that was found; empty when there is none.
func (c Commands) Remedy(in claim.Inspection) string {
	switch in.State {
	case claim.Abandoned:
		return c.Clear + " --token " + clikit.Quote(in.Token)
	case claim.HeldNow:
		return HolderCommand(in)
	case claim.Unproven:
		return c.Force(in)
	}
	return ""
}

// Force names an unproven claim exactly; whether forcing it is safe only a person can know.
func (c Commands) Force(in claim.Inspection) string {
	by := "--token " + clikit.Quote(in.Token)
	switch {
	case in.Token == "" && in.Fingerprint == "":
		return "none is safe: the claim cannot be read, so it cannot be named"
	case in.Token == "":
		by = "--digest " + in.Fingerprint
	}
	return fmt.Sprintf("%s %s --force # only when no %s can be running: on a live claim it can make two holders", c.Clear, by, c.Users)
}

// Object is a claim file, as found or as cleared.
type Object struct {
	clikit.Head
	clikit.Location
	Claim  *View  `json:"claim,omitzero"`
	Remedy string `json:"remedy,omitzero"`

	in claim.Inspection
}

// Text describes the claim.
func (o *Object) Text() string {
	switch {
	case o.Code == "cleared":
		return "cleared " + o.in.Describe()
	case o.in.State == claim.Absent:
		return "there is no claim: no change is under way"
	case o.Remedy == "":
		return o.in.Describe()
	}
	return o.in.Describe() + "\nremedy: " + o.Remedy
}

// Found is the object of a claim that was inspected.
func Found(in claim.Inspection, c Commands) *Object {
	return &Object{
		Head: clikit.Done(string(in.State)), Location: clikit.At(in.Path), Claim: Of(&in), Remedy: c.Remedy(in), in: in,
	}
}

// Cleared is the object of a claim that was removed.
func Cleared(in claim.Inspection) *Object {
	return &Object{Head: clikit.Done("cleared"), Location: clikit.At(in.Path), Claim: Of(&in), in: in}
}

// ClearFlags name the claim to clear.
func ClearFlags(req *claim.ClearRequest) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "token", Usage: "the claim's `TOKEN`", Destination: &req.Token},
		&cli.StringFlag{Name: "digest", Usage: "with --force: the claim's fingerprint, `sha256:…`", Destination: &req.Digest},
		&cli.BoolFlag{Name: "force", Usage: "also an unproven claim; read the risk above", Destination: &req.Force, DisableDefaultText: true},
	}
}

// CheckClear refuses a request that names no claim, or not exactly one; inspect is the command that prints the token.
func CheckClear(req claim.ClearRequest, inspect string) error {
	switch {
	case req.Token == "" && req.Digest == "":
		return clikit.Usagef("which claim? give --token; '%s' prints it", inspect)
	case req.Digest != "" && !req.Force:
		return clikit.Usagef("--digest goes with --force")
	case req.Digest != "" && req.Token != "":
		return clikit.Usagef("give --token or --digest, not both")
	}
	return nil
}
