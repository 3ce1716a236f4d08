package supervise

import (
	"context"
	"os"
	"slices"
	"strings"
)

// During calls do with a context that ends when a signal comes that ends a wrapper without a child, and returns that
// signal, or nil. A Ctrl-Z meanwhile suspends the wrapper.
func (s *Signals) During(do func(context.Context)) os.Signal {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	over := make(chan struct{})
	watched := make(chan os.Signal, 1)
	go func() {
		defer close(watched)
		for {
			select {
			case <-over:
				return
			case sig := <-s.C():
				if Ends(sig) {
					cancel()
					watched <- sig
					return
				}
				Suspend(sig)
			}
		}
	}()
	do(ctx)
	close(over)
	return <-watched
}

// Heed takes the signals that came before there is a child to get them, and returns the one that ends the wrapper, or nil.
// After each of them, and at least once, look must find that the hold is still there.
func (s *Signals) Heed(look func() error) (os.Signal, error) {
	for {
		if err := look(); err != nil {
			return nil, err
		}
		arrived := s.Arrived()
		for _, sig := range arrived {
			if Ends(sig) {
				return sig, nil
			}
			Suspend(sig)
		}
		if len(arrived) == 0 {
			return nil, nil
		}
	}
}

// Environment is env with the variables, "NAME=value" each, in it. Those of an outer wrapper go: of two values, programs take
// the first one.
func Environment(env []string, variables ...string) []string {
	for _, v := range variables {
		name, _, _ := strings.Cut(v, "=")
		env = slices.DeleteFunc(env, func(old string) bool { return strings.HasPrefix(old, name+"=") })
		env = append(env, v)
	}
	return env
}
