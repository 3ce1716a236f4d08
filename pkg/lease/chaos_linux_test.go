package lease

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

// chaos runs workers on one lease, kills and stops them at random, clears the claims of the dead, and collects what all
// of them reported.
type chaos struct {
	*rig
	job      job
	rand     *rand.Rand
	operator *player // looks at the claims and clears them
	workers  []*process
	logs     []string
	deaths   map[string]int64 // log of a killed worker: when it was over
	entries  []Entry          // the journal lines that were seen, in order
	had      map[string]bool  // by token and operation
	counts   map[string]int
}

// process is a worker process.
type process struct {
	cmd     *exec.Cmd
	over    io.Closer // its standard input: it ends when that does
	log     string
	resumes int64 // when it goes on; 0 when it is not stopped
}

func newChaos(t *testing.T, seed uint64, j job) *chaos {
	r := newRig(t)
	c := &chaos{rig: r, job: j, rand: rand.New(rand.NewPCG(seed, 1)), deaths: map[string]int64{}, had: map[string]bool{}, counts: map[string]int{}}
	c.job.Path = r.path
	c.job.Epoch = (time.Now().UnixNano() - monotonic()) &^ 1023 // exact as a double, too
	c.operator = r.player("operator")
	t.Cleanup(func() {
		for _, p := range c.workers {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
	})
	return c
}

// spawn starts one more worker.
func (c *chaos) spawn() *process {
	c.Helper()
	j := c.job
	j.Name = fmt.Sprint("w", len(c.logs))
	j.Seed = c.rand.Uint64()
	j.Log = filepath.Join(filepath.Dir(c.dir), j.Name+".log")
	arg, err := json.Marshal(j)
	if err != nil {
		c.Fatal(err)
	}
	p := &process{cmd: testkit.Command("worker", string(arg)), log: j.Log}
	p.cmd.Stderr = os.Stderr
	if p.over, err = p.cmd.StdinPipe(); err != nil {
		c.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		c.Fatal(err)
	}
	c.logs = append(c.logs, j.Log)
	c.workers = append(c.workers, p)
	return p
}

// run keeps n workers busy for as long as that, and until each of the events has come, and joins them.
func (c *chaos) run(n int, length time.Duration, events ...string) {
	c.Helper()
	for range n {
		c.spawn()
	}
	until := time.Now().Add(length)
	clearAt := time.Now()
	for tick := 0; time.Now().Before(until) || c.lacks(events) && time.Now().Before(until.Add(time.Minute)); tick++ {
		time.Sleep(2 * time.Millisecond)
		c.resume(monotonic())
		if tick%4 == 0 {
			c.collect()
		}
		c.disturb()
		if time.Now().After(clearAt) { // an operator takes a while
			c.clear()
			clearAt = time.Now().Add(time.Duration(c.rand.Int64N(120)) * time.Millisecond)
		}
	}
	c.join()
	c.clear()
	if c.lacks(events) {
		c.Errorf("of %q only these came: %v", events, c.counts)
	}
}

// work keeps n workers busy for as long as that, and until enough has happened, undisturbed, and joins them.
func (c *chaos) work(n int, length time.Duration, enough func() bool) {
	c.Helper()
	for range n {
		c.spawn()
	}
	begun := time.Now()
	for tick := 0; ; tick++ {
		time.Sleep(8 * time.Millisecond)
		c.collect()
		if worked := time.Since(begun); worked > length && (tick%30 == 0 && enough() || worked > length+time.Minute) {
			break
		}
	}
	c.join()
}

// join ends the workers.
func (c *chaos) join() {
	c.Helper()
	c.resume(1 << 62)
	for _, p := range c.workers {
		p.over.Close()
		if err := p.cmd.Wait(); err != nil {
			c.Errorf("a worker: %v", err)
		}
	}
	c.workers = nil
	c.collect()
}

func (c *chaos) lacks(events []string) bool {
	return slices.ContainsFunc(events, func(event string) bool { return c.counts[event] == 0 })
}

// disturb does something to somebody, or nothing.
func (c *chaos) disturb() {
	p, roll := c.workers[c.rand.IntN(len(c.workers))], c.rand.IntN(200)
	switch {
	case roll < 2:
		c.kill(p)
	case roll < 4:
		c.kill(c.inside(p))
	case roll < 7:
		c.dieEntering()
	case roll < 22 && p.resumes == 0:
		c.stop(p)
		p.resumes = monotonic() + c.rand.Int64N(60)*int64(time.Millisecond)
	}
}

func (c *chaos) signal(p *process, s unix.Signal) {
	c.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		c.Fatal(err)
	}
}

func (c *chaos) stop(p *process) {
	c.signal(p, unix.SIGSTOP)
	c.counts["stopped"]++
}

func (c *chaos) resume(now int64) {
	for _, p := range c.workers {
		if p.resumes != 0 && p.resumes <= now {
			c.signal(p, unix.SIGCONT)
			p.resumes = 0
		}
	}
}

// inside is the worker that has the claim, stopped in the middle of it; another when none can be caught.
func (c *chaos) inside(other *process) *process {
	c.Helper()
	for range 200 {
		p := c.claimant()
		if p == nil {
			continue
		}
		c.signal(p, unix.SIGSTOP)
		p.await(c, "T")
		if c.claimant() == p {
			return p
		}
		if p.resumes == 0 {
			c.signal(p, unix.SIGCONT)
		}
	}
	return other
}

// claimant is the worker whose evidence is in the claim file.
func (c *chaos) claimant() *process {
	in, err := c.operator.InspectClaim()
	for _, p := range c.workers {
		if err == nil && in.Evidence != nil && in.Evidence.PID == p.cmd.Process.Pid {
			return p
		}
	}
	return nil
}

// kill ends a worker in the middle of whatever it does, and starts another in its place.
func (c *chaos) kill(p *process) {
	c.Helper()
	c.signal(p, unix.SIGKILL)
	_ = p.cmd.Wait()
	c.deaths[p.log] = c.job.shared() // from here on it changes nothing
	for i, one := range c.workers {
		if one == p {
			c.workers = append(c.workers[:i], c.workers[i+1:]...)
		}
	}
	c.counts["killed"]++
	c.spawn()
}

// collect notes the journal's lines that it has not seen. Compaction keeps more lines than come between two looks, mostly.
func (c *chaos) collect() {
	for line := range strings.Lines(c.bytes(".journal")) {
		e, err := parseEntry([]byte(line))
		if err != nil {
			continue // torn, or being written
		}
		if e.Op == OpCompacted {
			if !c.had[e.Token] {
				c.counts["compacted"]++
			}
			c.had[e.Token] = true
			continue
		}
		if key := string(e.Op) + e.Token; !c.had[key] {
			c.had[key] = true
			c.entries = append(c.entries, e)
		}
	}
}

// history is all operations that were reported; one whose worker was killed during it ends with that death.
func (c *chaos) history() (all []*operation) {
	c.Helper()
	for _, log := range c.logs {
		content, err := os.ReadFile(log)
		if err != nil {
			continue // it was killed before it began
		}
		var open *operation
		for line := range bytes.Lines(content) {
			if !bytes.HasSuffix(line, []byte("\n")) {
				break // a report that was cut off was not made
			}
			o, err := reported(line)
			if err != nil {
				c.Fatalf("%s: %v", log, err)
			}
			if o.Answered {
				all, open = append(all, o), nil
			} else {
				open = o
			}
		}
		if open != nil {
			open.Return = c.deaths[log]
			all = append(all, open)
		}
	}
	return all
}

// reported reads one report. The other implementation reports files instead of what they say.
func reported(line []byte) (*operation, error) {
	var r struct {
		operation
		File, ReplacedFile string
	}
	err := json.Unmarshal(line, &r)
	if err == nil && r.File != "" {
		r.Lease, err = sightOf([]byte(r.File))
	}
	if err == nil && r.ReplacedFile != "" {
		r.Replaced, err = sightOf([]byte(r.ReplacedFile))
	}
	return &r.operation, err
}

// atLast looks at the lease when all workers are gone.
func (c *chaos) atLast() *operation {
	c.Helper()
	o := &operation{ID: "last", Verb: "status", Call: c.job.shared(), Answered: true}
	c.clock.set(time.Unix(0, c.job.shared()))
	st, err := c.operator.Status()
	if err != nil {
		c.Fatal(err)
	}
	o.Code, o.Lease, o.Return = string(st.State), sighted(st.Lease), c.job.shared()
	return o
}
