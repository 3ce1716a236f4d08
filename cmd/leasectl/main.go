// Command leasectl is the fleet lease; see package holdfast/internal/cmd/leasectl.
package main

import (
	"os"

	"holdfast/internal/clikit"
	"holdfast/internal/cmd/leasectl"
)

func main() { os.Exit(leasectl.Main(clikit.Env{Args: os.Args})) }
