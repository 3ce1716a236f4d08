//go:build !linux && !darwin && !freebsd

package procid

import (
	"errors"
	"os"
	"time"
)

type view struct{}

func newView() view { return view{} }

func errNoKeys() error { return errors.New("start keys are not made on this operating system") }

func (view) mint(int) (string, error) { return "", errNoKeys() }

func (view) candidate(int) candidate { return candidate{NoKeys: errNoKeys()} }

func (view) observe(Identity, Key) facts {
	hostname, _ := os.Hostname()
	return facts{Hostname: hostname, Boot: weakBoot}
}

func (view) started(Key) (time.Time, bool) { return time.Time{}, false }
