// Command fencectl is the owner fence: may this process open this session directory, and did the last owner end cleanly?
package main

import (
	"os"

	"holdfast/internal/clikit"
	"holdfast/internal/cmd/fencectl"
)

func main() { os.Exit(fencectl.Main(clikit.Env{Args: os.Args})) }
