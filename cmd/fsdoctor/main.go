// Command fsdoctor is the FIFO-safe doctor; see package holdfast/internal/cmd/fsdoctor.
package main

import (
	"os"

	"holdfast/internal/clikit"
	"holdfast/internal/cmd/fsdoctor"
)

func main() { os.Exit(fsdoctor.Main(clikit.Env{Args: os.Args})) }
