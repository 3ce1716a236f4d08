package regctl

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"holdfast/internal/clikit"
	"holdfast/internal/supervise"
	"holdfast/pkg/procid"
	"holdfast/pkg/registry"
)

// The statuses that run itself produces, as coreutils' timeout does.
const statusRefused = 125

// portWord is replaced in the command's arguments by the port, for programs that only know one.
const portWord = "{port}"

type runOptions struct {
	acquireOptions
	noListen bool
	conflict int
}

func boolFlag(name, usage string, into *bool) cli.Flag {
	return &cli.BoolFlag{Name: name, Usage: usage, Destination: into, DisableDefaultText: true}
}

func runVerb(s *session) *clikit.Verb {
	var o runOptions
	return &clikit.Verb{
		Name:  "run",
		Usage: "register a service while it runs, with a socket that nobody can take from it",
		Args:  "-- COMMAND [ARG…]",
		Description: `Binds the endpoint, registers it for the root, and hands the listening socket to the command by the
convention of socket activation: descriptor 3, LISTEN_FDS=1, LISTEN_PID, LISTEN_FDNAMES=http. The command is the owner. It also
gets REG_ROOT, REG_ENDPOINT, REG_EPOCH and REG_CAPABILITY_FILE. On SIGTERM the phase becomes stopping before the signal is
passed on; when the command has ended the registration is released.

For a program that only knows a port, --no-listen chooses one, registers it, and replaces {port} in the arguments.

The command runs as without regctl: same terminal, same standard streams, its own exit status (128 + N after signal N).
Statuses of regctl's own: 125 refused or failed before the command started, 126 it cannot be executed, 127 there is no such
program; the last line on standard error then says so.

Example:

   regctl run --root . --endpoint http://127.0.0.1:0 -- my-service
   regctl run --root . --endpoint http://127.0.0.1:0 --no-listen -- python3 -m http.server --bind 127.0.0.1 {port}`,
		Flags: append(o.configFlags(),
			boolFlag("no-listen", "do not bind: choose a port and replace {port} in the arguments", &o.noListen),
			&cli.IntFlag{Name: "conflict-exit-code", Aliases: []string{"E"}, Usage: "exit with `N` when somebody else has the root or the endpoint", Destination: &o.conflict, Value: statusRefused},
		),
		RawOutput: true,
		Command:   true,
		Failed:    statusRefused,
		Run:       func(c *clikit.Call) error { return s.run(c, o) },
	}
}

func (o *runOptions) complete() (registry.Endpoint, error) {
	switch requested, ok := registry.ParseEndpoint(o.endpoint); {
	case o.endpoint == "":
		return requested, clikit.Usagef("where will it serve? give --endpoint URL, with port 0 for any")
	case !ok:
		return requested, clikit.Usagef("--endpoint %q is no loopback endpoint: write http://127.0.0.1:PORT or http://[::1]:PORT", o.endpoint)
	case o.root == "":
		return requested, clikit.Usagef("which root? give --root DIR")
	case o.conflict < 0 || o.conflict > 255:
		return requested, clikit.Usagef("--conflict-exit-code must be from 0 to 255")
	default:
		return requested, nil
	}
}

// serving is one run: the registration and the command.
type serving struct {
	home    *registry.Home
	receipt string
	c       *clikit.Call
}

func (s *session) run(c *clikit.Call, o runOptions) error {
	requested, err := o.complete()
	if err != nil {
		return err
	}
	signals := supervise.Catch()
	home, err := s.openRoot(o.rootOptions)
	if err != nil {
		return err
	}
	defer home.Close()
	socket, bound, err := listen(requested)
	if err != nil {
		return o.conflicting(err)
	}
	w := &serving{home: home, c: c}
	child, err := w.start(o, socket, bound, signals)
	if err != nil {
		return o.conflicting(err)
	}
	s.progress.Line = nil // the terminal is the command's
	return w.end(child.Run(signals, w.hold()))
}

// listen binds the endpoint. The socket is for the command.
func listen(requested registry.Endpoint) (*os.File, registry.Endpoint, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(requested.Host, strconv.Itoa(requested.Port)))
	if err != nil {
		return nil, requested, unlistened(requested, err)
	}
	defer l.Close()
	tcp := l.(*net.TCPListener)
	bound := registry.Endpoint{Host: requested.Host, Port: tcp.Addr().(*net.TCPAddr).Port}
	file, err := tcp.File()
	return file, bound, err
}

// unlistened tells an endpoint that somebody has from one that this system does not have.
func unlistened(e registry.Endpoint, err error) error {
	r := &registry.Refusal{Code: "endpoint-unavailable", Path: e.String(), How: "cannot be listened on here", Err: err}
	var no unix.Errno
	if errors.As(err, &no) {
		r.Err = no
	}
	if no == unix.EADDRINUSE {
		r.Code, r.How, r.Err = registry.CodeConflict, fmt.Sprintf("is in use: another program listens there ('ss -ltnp sport = :%d' shows which)", e.Port), nil
	}
	return r
}

// start registers the command's process before it becomes the command.
func (w *serving) start(o runOptions, socket *os.File, bound registry.Endpoint, signals *supervise.Signals) (*supervise.Child, error) {
	root, err := registry.Physical(o.root)
	if err != nil {
		return nil, err
	}
	epoch := uuid.NewString()
	command := supervise.Command{Argv: w.c.Args, Files: []*os.File{socket}}
	variables := []string{
		"REG_ROOT=" + root, "REG_ENDPOINT=" + bound.String(), "REG_EPOCH=" + epoch, "REG_CAPABILITY_FILE=" + w.home.CapabilityFile(root),
	}
	pidVariable := "LISTEN_PID"
	if o.noListen {
		command, pidVariable = supervise.Command{Argv: withPort(w.c.Args, bound.Port)}, ""
	} else {
		variables = append(variables, "LISTEN_FDS=1", "LISTEN_FDNAMES=http")
	}
	command.Env = supervise.Environment(os.Environ(), variables...)
	waiting, err := supervise.StartWaiting(command, pidVariable)
	if err != nil {
		socket.Close()
		return nil, startFailed(err)
	}
	err = w.register(o, bound, epoch, waiting.PID(), signals)
	socket.Close() // from now on only the command has it, and with --no-listen the port is the command's to bind
	if err != nil {
		waiting.Cancel()
		return nil, err
	}
	child, err := waiting.Go()
	if err != nil {
		return nil, errors.Join(startFailed(err), w.release())
	}
	return child, nil
}

func (w *serving) register(o runOptions, bound registry.Endpoint, epoch string, pid int, signals *supervise.Signals) error {
	owner, err := procid.Of(pid)
	if err != nil {
		return err
	}
	var a *registry.Acquired
	sig := signals.During(func(ctx context.Context) {
		a, err = w.home.Acquire(ctx, registry.Acquire{
			Root: o.root, Requested: o.endpoint, Bound: bound.String(), Policy: o.policy, Owner: owner, Epoch: epoch,
		})
	})
	if err == nil {
		w.receipt = a.Receipt
	}
	if sig == nil {
		return err
	}
	if err == nil {
		err = w.release()
	} else if errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(clikit.Interrupted(sig), err)
}

func withPort(argv []string, port int) []string {
	out := make([]string, len(argv))
	for i, arg := range argv {
		out[i] = strings.ReplaceAll(arg, portWord, strconv.Itoa(port))
	}
	return out
}

func startFailed(err error) error {
	var failed *supervise.StartError
	if errors.As(err, &failed) {
		return clikit.Exiting(failed.Status, err)
	}
	return err
}

func (w *serving) hold() supervise.Hold {
	return supervise.Hold{
		Check:   func() {},
		Grace:   func(error) time.Duration { return 0 },
		Note:    func(string, int) {},
		Passing: w.passing,
	}
}

// passing records that the service is about to end, before it is told to.
func (w *serving) passing(sig unix.Signal) {
	if sig != unix.SIGTERM {
		return
	}
	if _, err := w.home.SetPhase(context.Background(), w.receipt, registry.Stopping); err != nil {
		w.c.Warn("the phase could not be set to stopping: %v", err)
	}
}

func (w *serving) release() error {
	_, err := w.home.Release(context.Background(), w.receipt)
	return err
}

// end releases the registration of a command that has ended, and settles the exit status.
func (w *serving) end(r supervise.Result) error {
	if err := w.release(); err != nil {
		w.c.Warn("the registration was not released; 'regctl recover snapshot' leads on: %v", err)
	}
	if r.Leftover > 0 {
		w.c.Warn("still running, perhaps with its socket: %d of the command's processes", r.Leftover)
	}
	w.c.Exit(r.Status)
	if r.Signal != 0 {
		w.c.ExitBy(r.Signal)
	}
	return nil
}

// conflicting gives a refusal that is about another service the status that was asked for.
func (o *runOptions) conflicting(err error) error {
	switch clikit.CodeOf(err) {
	case registry.CodeConflict, registry.CodeQuarantine, registry.CodeUnavailable, registry.CodeClaimTimeout:
		return clikit.Exiting(o.conflict, err)
	}
	return err
}
