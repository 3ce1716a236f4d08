// Command regctl is the service registry: which service owns this root and this loopback endpoint, and how does a client reach it?
package main

import (
	"os"

	"holdfast/internal/clikit"
	"holdfast/internal/cmd/regctl"
)

func main() { os.Exit(regctl.Main(clikit.Env{Args: os.Args})) }
