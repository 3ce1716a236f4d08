// Package clikit is the shell around every verb of the four programs: flags, help, output, exit statuses.
//
// It is the one place that knows standard output and the process's exit. A verb is a function from options to objects
// and an error; clikit prints the objects in the format asked for, turns the error into a refusal, and maps codes to
// statuses. What the CLI library does differently from this contract is settled here once: usage errors go to standard
// error with status 64, an unknown word fails, "--" ends the flags, stray arguments are refused.
package clikit
