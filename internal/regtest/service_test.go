//go:build linux

package regtest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// serviceStatus is the status of a service that was told to end.
const serviceStatus = 7

// service is an HTTP service as regctl run starts it: "service" takes the socket that it is handed, "service PORT" binds the port.
// It answers with its epoch. At SIGTERM it serves on until the file named in $DRAINED is there, finishes what it has, and ends.
func service(args []string) error {
	l, err := handed()
	if len(args) > 0 {
		l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", args[0]))
	}
	if err != nil {
		return err
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, unix.SIGTERM)
	if delay, err := time.ParseDuration(os.Getenv("SERVE_AFTER")); err == nil {
		time.Sleep(delay)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(time.Millisecond)
		fmt.Fprint(w, os.Getenv("REG_EPOCH"))
	})}
	go func() { _ = server.Serve(l) }()
	<-told
	for path := os.Getenv("DRAINED"); path != ""; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			break
		}
	}
	if err := server.Shutdown(context.Background()); err != nil {
		return err
	}
	os.Exit(serviceStatus)
	return nil
}

// handed is the socket that was handed over, by the letter of the convention.
func handed() (net.Listener, error) {
	for name, want := range map[string]string{"LISTEN_PID": strconv.Itoa(os.Getpid()), "LISTEN_FDS": "1", "LISTEN_FDNAMES": "http"} {
		if got := os.Getenv(name); got != want {
			return nil, fmt.Errorf("%s is %q, not %q", name, got, want)
		}
	}
	f := os.NewFile(3, "handed")
	defer f.Close()
	l, err := net.FileListener(f)
	if err == nil && "http://"+l.Addr().String() != os.Getenv("REG_ENDPOINT") {
		err = fmt.Errorf("the socket is %s, and REG_ENDPOINT %s", l.Addr(), os.Getenv("REG_ENDPOINT"))
	}
	return l, err
}
