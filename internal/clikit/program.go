package clikit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"holdfast/internal/offload"
)

// Program is one of the four tools.
type Program struct {
	Name        string
	Usage       string // one line
	Description string
	Verbs       []*Verb
	Offload     bool                              // run in a second process, which may hang in a filesystem without the first one
	Refusal     Object                            // an empty one of the kind that Refuse makes, for the schema
	Before      func(*Call)                       // called before any verb; may be nil
	Refuse      func(op string, err error) Object // nil: a plain refusal
}

// Verb is one word of a program, or a group of words below it.
type Verb struct {
	Name        string
	Usage       string // one line
	Args        string // what follows the flags, for the help; empty refuses arguments
	Description string // with an example
	Flags       []cli.Flag
	Verbs       []*Verb  // of a group; then Run is nil
	Objects     []Object // one of each kind it prints, for the schema
	Exports     []string // the variables of its --format sh; empty when it has none
	Script      bool     // its --format sh is a script to review, of objects with a Script method
	Replaces    bool     // a refusal in shell form unsets the variables, lest stale ones be taken for what was refused
	Takes       bool     // takes something that only its object tells of, and gives it back when that cannot be delivered
	Lists       bool     // a reader that goes away early ends it quietly
	Mutates     bool     // a signal ends its waiting, never its writing
	RawOutput   bool     // standard output is given away: objects go to standard error
	Command     bool     // takes a command after "--", and nothing before it
	Failed      int      // the status of every refusal, 0 for its code's own
	Lost        string   // of a verb that runs a command: what status 124 says was lost
	Run         func(*Call) error
}

// Call is one run of a verb.
type Call struct {
	Context context.Context // ended by a signal, for a verb that mutates
	Args    []string
	Words   []string // the whole command line after the program's name
	printer
	raw    bool
	signal unix.Signal // by which the program is to end; 0 for none
}

// Emit prints one object. When it fails the verb returns the error; Undeliverable tells whether there is something to
// undo.
func (c *Call) Emit(o Object) error {
	if !c.raw {
		return c.emit(o)
	}
	h := o.head()
	h.Tool, h.Op = c.tool, c.op
	c.status = max(c.status, StatusOf(h.Code))
	c.format = JSON
	if IsTerminal(2) {
		c.format = Text
	}
	text, err := c.render(o)
	if err == nil {
		c.progress.Clear()
		fmt.Fprint(os.Stderr, text)
		c.comment(o) // last, so that the last line says why
	}
	return err
}

// Textual reports whether objects are printed as text for people.
func (c *Call) Textual() bool { return c.format == Text }

// Scripted reports whether objects are printed for a shell.
func (c *Call) Scripted() bool { return c.format == Shell }

// Exit makes status the call's exit status.
func (c *Call) Exit(status int) { c.status = status }

// ExitBy makes the program end by a signal at its very end, for which shells show 128 + N; where that cannot be, it exits with
// that status.
func (c *Call) ExitBy(sig unix.Signal) { c.status, c.signal = 128+int(sig), sig }

// Progress says on standard error what is being waited for, when a person is there to read it.
func (c *Call) Progress(format string, args ...any) {
	if IsTerminal(2) {
		c.say(fmt.Sprintf(format, args...))
	}
}

// Env is what a program is started with.
type Env struct {
	Args     []string          // as os.Args
	Observed func(line []byte) // told each JSON object that is printed; for tests
}

// run is one start of a program.
type run struct {
	*Program
	env    Env
	call   Call
	rest   []string // what followed "--"
	format Format   // what --format says; empty when it was not given
	failed int      // the status of every refusal of the verb, 0 for its code's own
}

// Main runs the program and returns its exit status, unless a signal is to end the process.
func (p *Program) Main(env Env) int {
	if p.Offload {
		quitAsEver()
		return offload.Run(func() int { return p.main(env) })
	}
	return p.main(env)
}

func (p *Program) main(env Env) int {
	r := &run{Program: p, env: env}
	status := r.main()
	if r.call.signal != 0 {
		dieOf(r.call.signal)
	}
	return status
}

func (r *run) main() (status int) {
	r.call.tool, r.call.observed, r.call.progress.fd = r.Name, r.env.Observed, 2
	defer func() {
		if v := recover(); v != nil {
			fmt.Fprintf(os.Stderr, "%s\n", debug.Stack())
			status = r.refuse(fmt.Errorf("bug, please report it: %v", v))
		}
	}()
	args := r.env.Args
	if i := slices.Index(args, "--"); i >= 0 {
		args, r.rest = args[:i], args[i+1:]
	}
	r.call.format = formatAsked(args)
	if len(args) > 1 && args[1] == "--version" {
		return r.version()
	}
	err := r.app().Run(args)
	var help cli.ExitCoder
	if errors.As(err, &help) && CodeOf(err) == "bug" {
		r.call.op = "usage"
		err = Usagef("%v", help) // the library's own: help about a word that is no verb
	}
	if err != nil {
		return r.refuse(err)
	}
	return r.call.status
}

// formatAsked is the format that a command line asks for. One that cannot be parsed is answered in it as well: eval runs
// whatever it is given.
func formatAsked(args []string) Format {
	asked := defaultFormat()
	for i, arg := range args {
		value, ok := strings.CutPrefix(strings.TrimPrefix(arg, "-"), "-format=")
		if !ok && (arg == "--format" || arg == "-format") && i+1 < len(args) {
			value = args[i+1]
		}
		if f := Format(value); f == JSON || f == Text || f == Shell {
			asked = f
		}
	}
	return asked
}

func defaultFormat() Format {
	if IsTerminal(1) {
		return Text
	}
	return JSON
}

// refuse prints the refusal that an error is and returns its status.
func (r *run) refuse(err error) int {
	_ = r.call.flush()
	r.call.buffer = nil // what is said last is said at once
	if Undeliverable(err) {
		r.call.say(err.Error())
		return statusOutput
	}
	object := Object(refusalOf(err))
	var usage *UsageError
	if r.Refuse != nil && !errors.As(err, &usage) {
		object = r.Refuse(r.call.op, err)
	}
	if err := r.call.Emit(object); err != nil {
		r.call.say(err.Error())
		return statusOutput
	}
	var own interface{ ExitStatus() int }
	switch {
	case errors.As(err, &own):
		if i, is := own.(*interrupted); is {
			r.call.signal = InterruptOf(i)
		}
		return own.ExitStatus()
	case r.failed != 0:
		return r.failed
	}
	return r.call.status
}

// app builds the CLI library's view of the program.
func (r *run) app() *cli.App {
	cli.HelpFlag = &cli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "show this help", DisableDefaultText: true}
	app := &cli.App{
		Name: r.Name, HelpName: r.Name, Usage: r.Usage, Description: r.Description, UsageText: r.Name + " VERB [FLAGS]",
		HideHelpCommand: true, HideVersion: true,
		Writer: os.Stdout, ErrWriter: os.Stderr,
		ExitErrHandler:        func(*cli.Context, error) {},
		Flags:                 []cli.Flag{&cli.BoolFlag{Name: "version", Usage: "show the version, and nothing else", DisableDefaultText: true}},
		OnUsageError:          r.usageError(r.Name, &Verb{}),
		Action:                r.missing(r.Name, r.Verbs),
		CustomAppHelpTemplate: cli.AppHelpTemplate + "\n" + exitTable,
	}
	for _, v := range r.Verbs {
		app.Commands = append(app.Commands, r.command(v, ""))
	}
	return app
}

func (r *run) command(v *Verb, above string) *cli.Command {
	op := strings.TrimPrefix(above+"-"+v.Name, "-")
	full := strings.ReplaceAll(r.Name+" "+strings.ReplaceAll(above, "-", " ")+" "+v.Name, "  ", " ")
	c := &cli.Command{
		Name: v.Name, Usage: v.Usage, ArgsUsage: v.Args, Description: v.Description,
		HideHelpCommand: true, Flags: v.Flags, OnUsageError: r.usageError(full, v),
	}
	if v.Run == nil {
		c.Action = r.missing(full, v.Verbs)
		c.UsageText = full + " VERB [FLAGS]"
		c.CustomHelpTemplate = cli.SubcommandHelpTemplate + "\n" + exitTable
		for _, sub := range v.Verbs {
			c.Subcommands = append(c.Subcommands, r.command(sub, op))
		}
		return c
	}
	c.UsageText = strings.TrimSpace(full + " [FLAGS] " + v.Args)
	c.CustomHelpTemplate = cli.CommandHelpTemplate + "\n" + v.exitTable()
	format := &formatValue{into: &r.format, exports: len(v.Exports) > 0, script: v.Script}
	if !v.RawOutput {
		c.Flags = append(c.Flags, &cli.GenericFlag{Name: "format", Value: format, Usage: format.usage(), DefaultText: "text on a terminal, else json"})
	}
	c.Action = func(ctx *cli.Context) error { return r.act(v, op, full, ctx) }
	return c
}

// exitTable is what the help says of the verb's exit statuses.
func (v *Verb) exitTable() string {
	if v.Command {
		lost := ""
		if v.Lost != "" {
			lost = "   124  " + v.Lost + " was lost, and the command was ended\n"
		}
		return fmt.Sprintf(commandExitTable, lost)
	}
	return exitTable
}

func (r *run) act(v *Verb, op, full string, ctx *cli.Context) error {
	r.call.op, r.call.raw = op, v.RawOutput
	r.failed = v.Failed
	args := ctx.Args().Slice()
	if v.Command {
		if len(args) > 0 || len(r.rest) == 0 {
			return Usagef("put the command after --: '%s'", full+" [FLAGS] "+v.Args)
		}
	}
	for _, arg := range args {
		if len(arg) > 1 && arg[0] == '-' {
			return Usagef("flag %s comes after an argument; put flags first, or -- before arguments that begin with -", arg)
		}
	}
	args = append(args, r.rest...)
	if v.Args == "" && len(args) > 0 && args[0] == "#" {
		args = nil // an interactive zsh hands the comment of a pasted command on as arguments
	}
	if v.Args == "" && len(args) > 0 {
		return Usagef("unexpected argument %q; try '%s --help'", args[0], full)
	}
	if r.call.format = r.format; r.format == "" {
		r.call.format = defaultFormat()
	}
	r.call.Args, r.call.Words = args, r.env.Args[1:]
	r.call.exports, r.call.takes, r.call.replaces = v.Exports, v.Takes, v.Takes || v.Replaces
	r.call.Context = context.Background()
	switch {
	case v.Command: // catches signals itself
	case v.Mutates && !signal.Ignored(unix.SIGINT): // as well
	default:
		quitAsEver()
	}
	if v.Mutates || v.Command {
		if err := needDescriptors(); err != nil {
			return err
		}
	}
	if v.Mutates {
		stop := r.catch()
		defer stop()
	}
	if r.Before != nil {
		r.Before(&r.call)
	}
	if v.Lists && r.Offload && !IsTerminal(1) {
		r.call.buffer = &buffer{}
	}
	err := v.Run(&r.call)
	if ferr := r.call.flush(); err == nil {
		err = ferr
	}
	if v.Lists && errors.Is(err, unix.EPIPE) && Undeliverable(err) {
		return nil
	}
	if cause := context.Cause(r.call.Context); errors.Is(err, context.Canceled) && cause != nil {
		return cause
	}
	return err
}

// catch makes the signals that end programs end waits instead, so that no claim is left behind by a Ctrl-C.
func (r *run) catch() (stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	r.call.Context = ctx
	caught := make(chan os.Signal, 1)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(s) {
			signal.Notify(caught, s)
		}
	}
	go func() {
		if s, ok := <-caught; ok {
			cancel(&interrupted{s})
		}
	}()
	return func() {
		signal.Stop(caught)
		cancel(nil)
	}
}

// quitAsEver gives SIGQUIT the action that it has in other programs.
func quitAsEver() {
	if signal.Ignored(unix.SIGINT) {
		signal.Ignore(unix.SIGQUIT) // shells set them together, and the Go runtime tells of SIGINT alone
		return
	}
	defaultAction(unix.SIGQUIT) // the Go runtime's is to show its insides
}

func (r *run) usageError(full string, v *Verb) cli.OnUsageErrorFunc {
	return func(_ *cli.Context, err error, _ bool) error {
		r.call.op, r.call.raw, r.failed = opOf(full), v.RawOutput, v.Failed
		return Usagef("%s; try '%s --help'", dashed(err.Error()), full)
	}
}

// dashed is a message of the flag library with two dashes before a flag's name, as everybody writes them.
func dashed(text string) string {
	for _, before := range []string{"flag provided but not defined: ", "flag needs an argument: "} {
		if name, ok := strings.CutPrefix(text, before+"-"); ok {
			return before + twoDashes(name) + name
		}
	}
	for _, before := range []string{"invalid value ", "invalid boolean value "} {
		rest, ok := strings.CutPrefix(text, before)
		if value, err := strconv.QuotedPrefix(rest); ok && err == nil {
			how, said, _ := strings.Cut(rest[len(value):], "-")
			return before + value + how + twoDashes(said) + said
		}
	}
	return text
}

// twoDashes are the dashes of a flag whose name begins the text: one where the name is a letter.
func twoDashes(text string) string {
	if len(text) == 1 || len(text) > 1 && text[1] == ':' {
		return "-"
	}
	return "--"
}

// missing is the action of a word that needs another word after it.
func (r *run) missing(full string, verbs []*Verb) cli.ActionFunc {
	return func(ctx *cli.Context) error {
		r.call.op = opOf(full)
		var words []string
		for _, v := range verbs {
			words = append(words, v.Name)
		}
		if name := ctx.Args().First(); name != "" {
			return Usagef("%q is no verb of '%s'; it has: %s", name, full, strings.Join(words, ", "))
		}
		return Usagef("a verb is missing: %s; try '%s --help'", strings.Join(words, ", "), full)
	}
}

// opOf is the op of an object about a command: its words after the program's name.
func opOf(full string) string {
	_, words, _ := strings.Cut(full, " ")
	if words == "" {
		return "usage"
	}
	return strings.ReplaceAll(words, " ", "-")
}

// Warn says something on standard error that does not change the outcome.
func (c *Call) Warn(format string, args ...any) { c.say("warning: " + fmt.Sprintf(format, args...)) }
