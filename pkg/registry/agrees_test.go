package registry

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// kind is what a file of a root is in one case of the table.
type kind int

const (
	missing kind = iota
	present      // of the registration's epoch
	former       // of another epoch of the same root
)

func (k kind) String() string { return [...]string{"missing", "present", "former"}[k] }

// files are what the table combines: format, config, host-config, registration (idle, stopped), owner.lock, checkout.lock and
// the capability.
type combination struct {
	format, config, host    kind
	registration            kind
	stopped                 bool
	owner, checkout, secret kind
}

// readable is the specification's sentence "A root's state is readable when…".
func (c combination) readable() bool {
	switch {
	case c.format != c.config || c.host == former && c.config != missing:
		return false
	case c.registration == missing:
		return c.owner == missing && c.secret == missing // a checkout.lock alone is an older writer's
	case c.format != present:
		return false
	case c.stopped:
		return c.owner == missing && c.checkout == missing && c.secret == missing
	default:
		return c.owner == c.registration && c.checkout == c.registration && c.secret == c.registration
	}
}

// TestARootIsReadableExactlyAsTheSpecificationSays: every combination of every file absent, present and of another epoch.
func TestARootIsReadableExactlyAsTheSpecificationSays(t *testing.T) {
	w := newWorld(t)
	contents := map[string][3][]byte{}
	// Two epochs of one root, with the same configuration, which has to name the host configuration that the table adds.
	host := []byte("{}\n")
	req := w.request(w.root("root"))
	req.Policy = identityOf(host)
	for _, k := range []kind{former, present} {
		a, err := w.Acquire(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range readNames[:6] {
			c := contents[name]
			c[k] = w.read(w.file("root", name))
			contents[name] = c
		}
		if _, err := w.Release(t.Context(), a.Receipt); err != nil {
			t.Fatal(err)
		}
		c := contents["stopped"]
		c[k] = w.read(w.file("root", registrationFile))
		contents["stopped"] = c
	}
	// "Another epoch" of a configuration is another configuration.
	other := configFile{schemaConfig, "http://127.0.0.1:9", identityOf(host)}
	contents[configName] = [3][]byte{nil, contents[configName][present], encode(other)}
	contents[formatFile] = [3][]byte{nil, contents[formatFile][present],
		encode(serviceFormat{schemaServiceFormat, req.Root, w.path, identityOf(encode(other))})}
	contents[hostConfigFile] = [3][]byte{nil, host, []byte("{ }\n")}

	dir := filepath.Dir(w.file("root", formatFile))
	tried, readable := 0, 0
	have := map[string][]byte{}
	eachCombination(func(c combination) {
		registration := registrationFile
		if c.stopped {
			registration = "stopped"
		}
		want := map[string][]byte{
			formatFile: contents[formatFile][c.format], configName: contents[configName][c.config],
			hostConfigFile: contents[hostConfigFile][c.host], registrationFile: contents[registration][c.registration],
			ownerLockFile: contents[ownerLockFile][c.owner], checkoutName: contents[checkoutName][c.checkout],
			capabilityName: contents[capabilityName][c.secret],
		}
		plant(t, dir, have, want)
		have = want
		state, err := w.readRoot(req.Root)
		if err == nil {
			state.close()
		} else if !isUncertain(err) {
			t.Fatalf("%+v: %v", c, err)
		}
		if (err == nil) != c.readable() {
			t.Fatalf("%+v: %v, and readable is %v", c, err, c.readable())
		}
		tried++
		if err == nil {
			readable++
		}
	})
	t.Logf("%d combinations, %d readable", tried, readable)
	if tried != 3*3*3*5*3*3*3 || readable == 0 {
		t.Errorf("%d combinations, %d readable", tried, readable)
	}
}

func eachCombination(f func(combination)) {
	three := []kind{missing, present, former}
	for _, format := range three {
		for _, config := range three {
			for _, host := range three {
				for _, registration := range three {
					for _, stopped := range []bool{false, true} {
						if stopped && registration == missing {
							continue
						}
						for _, owner := range three {
							for _, checkout := range three {
								for _, secret := range three {
									f(combination{format, config, host, registration, stopped, owner, checkout, secret})
								}
							}
						}
					}
				}
			}
		}
	}
}

// plant makes of the files in a directory, as far as they differ from what was planted before, those that are wanted.
func plant(t *testing.T, dir string, have, want map[string][]byte) {
	t.Helper()
	for name, content := range want {
		path := filepath.Join(dir, name)
		was, known := have[name]
		switch {
		case known && bytes.Equal(was, content) && (was == nil) == (content == nil):
		case content == nil:
			if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
		default:
			if err := os.WriteFile(path, content, fileMode); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestARowAndItsRegistrationBelongTogether: each row against each registration.
func TestARowAndItsRegistrationBelongTogether(t *testing.T) {
	w := newWorld(t)
	r := w.acquire("root").Registration
	other := r.Reservation
	other.Epoch = "cccccccc-0000-4000-8000-000000000001"
	for _, phase := range []Phase{Idle, Stopping, Quarantined, Stopped, ""} {
		reg := &r
		if reg.Phase = phase; phase == "" {
			reg = nil
		}
		for name, row := range map[string]*Reservation{"none": nil, "its": &r.Reservation, "another epoch's": &other} {
			running := phase != "" && phase != Stopped
			want := row == nil && !running || running && row != nil && *row == r.Reservation
			err := w.rowAgrees(r.Root, row, reg)
			if (err == nil) != want || err != nil && !isUncertain(err) {
				t.Errorf("row %s, registration %s: %v", name, phase, err)
			}
		}
	}
	// Every key of the row counts.
	for i, change := range []func(*Reservation){
		func(r *Reservation) { r.StateHome += "x" }, func(r *Reservation) { r.ConfigIdentity = strings.Repeat("1", 64) },
		func(r *Reservation) { r.Endpoint = "http://127.0.0.1:1" }, func(r *Reservation) { r.PID++ },
		func(r *Reservation) { r.StartKey += "x" }, func(r *Reservation) { r.Host += "x" },
		func(r *Reservation) { r.OwnerToken = other.Epoch }, func(r *Reservation) { r.Root += "x" },
	} {
		r.Phase = Idle
		row := r.Reservation
		change(&row)
		if w.rowAgrees(r.Root, &row, &r) == nil {
			t.Errorf("change %d of the row is not seen", i)
		}
	}
}

// TestEveryKeyOfEveryFileIsCompared changes one value at a time to another valid one.
func TestEveryKeyOfEveryFileIsCompared(t *testing.T) {
	w := newWorld(t)
	w.acquire("root")
	root := filepath.Join(w.dir, "root")
	swap := func(old, new string) func(string) string {
		return func(text string) string { return strings.Replace(text, old, new, 1) }
	}
	r := w.Inspect(root).Registration
	for name, changes := range map[string][]func(string) string{
		formatFile:       {swap(`"root":"`, `"root":"/x`), swap(`"stateHome":"`, `"stateHome":"/x`), swap(r.ConfigIdentity, strings.Repeat("1", 64))},
		configName:       {swap(`127.0.0.1`, `[::1]`), swap(strings.Repeat("0", 64), strings.Repeat("1", 64))},
		registrationFile: {swap(`"root":"`, `"root":"/x`), swap(`"stateHome":"`, `"stateHome":"/x`), swap(r.ConfigIdentity, strings.Repeat("1", 64)), swap(`127.0.0.1`, `[::1]`), swap(r.Epoch, r.OwnerToken), swap(fmt.Sprint(`"pid":`, r.PID), `"pid":1`), swap(r.StartKey, "x"), swap(r.Host+`"`, `x"`), swap(r.OwnerToken, r.Epoch), swap(r.CheckoutToken, r.Epoch), swap(`"idle"`, `"stopped"`)},
		ownerLockFile:    {swap(r.Epoch, r.OwnerToken), swap(r.OwnerToken, r.Epoch), swap(fmt.Sprint(`"pid":`, r.PID), `"pid":1`), swap(r.StartKey, "x"), swap(r.Host+`"`, `x"`)},
		checkoutName:     {swap(r.CheckoutToken, r.Epoch), swap(fmt.Sprint(`"pid":`, r.PID), `"pid":1`), swap(r.StartKey, "x"), swap(r.Host+`"`, `x"`)},
		capabilityName:   {swap(r.Epoch, r.OwnerToken)},
	} {
		was := w.read(w.file("root", name))
		for i, change := range changes {
			text := change(string(was))
			if text == string(was) {
				t.Fatalf("%s: change %d changes nothing", name, i)
			}
			w.write(w.file("root", name), []byte(text))
			if in := w.Inspect(root); in.State != StateUncertain {
				t.Errorf("%s with change %d is %s", name, i, in.State)
			}
		}
		w.write(w.file("root", name), was)
	}
	if in := w.Inspect(root); in.State != State(Idle) {
		t.Fatal(in.State, in.Err)
	}
}
