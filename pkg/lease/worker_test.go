package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// job is what a worker process is told, as its one argument.
type job struct {
	Path    string // of the lease
	Log     string // where it reports its operations, a file of its own
	Name    string
	Epoch   int64 // the wall clock at 0 of CLOCK_MONOTONIC, in ns
	Seed    uint64
	Bound   time.Duration // of the wait for the claim
	Compact int64         // bytes from where on the journal is compacted
	Longest time.Duration // of a lease
}

// shared is the clock of all participants: it runs with CLOCK_MONOTONIC and says the time of day.
func (j job) shared() int64 { return j.Epoch + monotonic() }

// worker is a process that does random operations on one lease, and reports each before and after,
// until its standard input ends.
func worker(args []string) error {
	var j job
	if err := json.Unmarshal([]byte(args[0]), &j); err != nil {
		return err
	}
	log, err := os.OpenFile(j.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	w := &working{job: j, rand: rand.New(rand.NewPCG(j.Seed, 0)), log: json.NewEncoder(log)}
	w.store, err = Open(j.Path, Options{
		Now: func() time.Time { return time.Unix(0, j.shared()) }, NewID: w.newID,
	})
	if err != nil {
		return err
	}
	w.store.iv.claimBound, w.store.iv.compactAbove = j.Bound, j.Compact
	w.store.iv.at = func(string) { // linger, so that a signal finds the worker between two steps now and then
		if w.rand.IntN(12) == 0 {
			time.Sleep(time.Duration(w.rand.IntN(5000)) * time.Microsecond)
		}
	}
	var over atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		over.Store(true)
	}()
	for !over.Load() {
		if err := w.step(); err != nil {
			return err
		}
		time.Sleep(time.Duration(w.rand.IntN(2000)) * time.Microsecond)
	}
	return nil
}

// working is a worker at work.
type working struct {
	job
	store *Store
	rand  *rand.Rand
	log   *json.Encoder
	n     int      // operations so far
	ids   []string // the next identifiers; the rest is random
	mine  string   // the lease it believes to hold; "" when none
	other string   // the last lease it saw
}

func (w *working) newID() string {
	if len(w.ids) == 0 {
		return uuid.NewString()
	}
	id := w.ids[0]
	w.ids = w.ids[1:]
	return id
}

// step does one operation and reports it.
func (w *working) step() error {
	w.n++
	o := &operation{ID: fmt.Sprintf("%s.%d", w.Name, w.n)}
	w.choose(o)
	o.Call = w.shared()
	if err := w.log.Encode(o); err != nil {
		return err
	}
	w.do(o)
	o.Return, o.Answered = w.shared(), true
	return w.log.Encode(o)
}

// choose picks an operation: what a holder would do, what one who waits would, and now and then what nobody should.
func (w *working) choose(o *operation) {
	o.Token = "t" + o.ID
	o.Duration = time.Duration(1+w.rand.Int64N(w.Longest.Milliseconds())) * time.Millisecond
	if w.rand.IntN(5) == 0 {
		w.mine = "" // forget it, and let it expire
	}
	o.Holder = w.mine
	verbs := []string{"renew", "renew", "renew", "release", "status", "take-over"}
	if w.mine == "" {
		o.Holder = w.other
		verbs = []string{"take-over", "take-over", "take-over", "acquire", "acquire", "status", "renew", "release"}
	}
	o.Verb = verbs[w.rand.IntN(len(verbs))]
	if o.Verb[0] == 'r' && w.mine == "" && w.rand.IntN(6) > 0 {
		o.Verb = "take-over" // or hardly a lease would live to its expiry
	}
	switch o.Verb {
	case "acquire", "take-over":
		o.Holder = "h" + o.ID
	case "renew":
		if w.rand.IntN(2) == 0 {
			o.Duration = 0
		}
	case "release", "status":
		o.Token, o.Duration = "", 0
	}
}

// do carries it out.
func (w *working) do(o *operation) {
	ctx := context.Background()
	var out *Outcome
	var err error
	switch o.Verb {
	case "acquire", "take-over":
		w.ids = []string{o.Holder, o.Token}
		out, err = w.store.Acquire(ctx, AcquireRequest{Duration: o.Duration, TakeOver: o.Verb == "take-over", Label: "of " + w.Name})
	case "renew":
		w.ids = []string{o.Token}
		out, err = w.store.Renew(ctx, o.Holder, o.Duration)
	case "release":
		out, err = w.store.Release(ctx, o.Holder)
	case "status":
		w.status(o)
		return
	}
	w.ids = nil
	if err != nil {
		w.refused(o, err)
		return
	}
	o.Lease, o.Replaced = sighted(out.Lease), sighted(out.Replaced)
	w.mine, w.other = o.Holder, o.Holder
	if o.Verb == "release" {
		w.mine = ""
	}
}

func (w *working) status(o *operation) {
	st, err := w.store.Status()
	if err != nil {
		o.Code = err.Error()
		return
	}
	o.Code, o.Lease = string(st.State), sighted(st.Lease)
}

func (w *working) refused(o *operation, err error) {
	o.Code = errCode(err)
	var r *Refusal
	if !errors.As(err, &r) {
		return
	}
	o.Lease, o.Written = sighted(r.Lease), sighted(r.Written)
	if r.Lease != nil {
		w.other = r.Lease.HolderID
	}
	if o.Holder == w.mine && o.Code != CodeClaimTimeout {
		w.mine = ""
	}
}
