package lease

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"holdfast/internal/testkit"
)

// foreign plays the existing Node implementation, as the protocol describes it: it creates LOCK.mutex exclusively,
// writes a bare token, polls every 10 ms, stages at LOCK.stage and renames, and unlinks the claim at the end. It writes
// six members, keeps the others when it renews, and knows neither fence token nor journal.
type foreign struct {
	job
	rand        *rand.Rand
	mine, other string

	mu      sync.Mutex
	history []*operation
}

// foreignLease is what it knows of a lease file; extra is what one more version of it would add.
type foreignLease struct {
	HolderID        string  `json:"holderId"`
	Hostname        string  `json:"hostname"`
	AcquiredAt      string  `json:"acquiredAt"`
	ExpiresAt       string  `json:"expiresAt"`
	DurationSeconds float64 `json:"durationSeconds"`
	Token           string  `json:"token"`
	Vendor          any     `json:"vendor,omitempty"`
}

func (f *foreign) work(over <-chan struct{}) error {
	for n := 1; ; n++ {
		select {
		case <-over:
			return nil
		case <-time.After(time.Duration(f.rand.IntN(4000)) * time.Microsecond):
		}
		if err := f.step(n); err != nil {
			return fmt.Errorf("%s, operation %d: %w", f.Name, n, err)
		}
	}
}

func (f *foreign) step(n int) error {
	if f.rand.IntN(5) == 0 {
		f.mine = "" // forget it, and let it expire
	}
	o := &operation{ID: fmt.Sprintf("%s.%d", f.Name, n), Holder: f.mine}
	o.Token = "t" + o.ID
	verbs := []string{"renew", "renew", "renew", "release", "take-over"}
	if f.mine == "" {
		o.Holder = f.other
		verbs = []string{"take-over", "take-over", "take-over", "acquire", "renew", "release"}
	}
	o.Verb = verbs[f.rand.IntN(len(verbs))]
	if o.Verb[0] == 'r' && f.mine == "" && f.rand.IntN(6) > 0 {
		o.Verb = "take-over" // or hardly a lease would live to its expiry
	}
	if o.Verb == "acquire" || o.Verb == "take-over" {
		o.Holder = "h" + o.ID
		o.Duration = time.Duration(1+f.rand.Int64N(f.Longest.Milliseconds())) * time.Millisecond
	}
	o.Call = f.shared()
	if err := f.mutate(o); err != nil {
		return err
	}
	o.Return, o.Answered = f.shared(), true
	f.mu.Lock()
	f.history = append(f.history, o)
	f.mu.Unlock()
	if o.Lease != nil {
		f.other = o.Lease.Holder
	}
	switch {
	case o.Code == "" && o.Verb != "release":
		f.mine = o.Holder
	case o.Code != CodeClaimTimeout && (o.Code == "" || o.Holder == f.mine):
		f.mine = ""
	}
	return nil
}

// mutate is one passage through the claim.
func (f *foreign) mutate(o *operation) error {
	mutex := f.Path + ".mutex"
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		claim, err := os.OpenFile(mutex, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			_, err = claim.WriteString(uuid.NewString())
			claim.Close()
			if err != nil {
				return err
			}
			break
		}
		if !errors.Is(err, os.ErrExist) {
			return err
		}
		if time.Now().After(deadline) {
			o.Code = CodeClaimTimeout
			return nil
		}
	}
	err := f.inside(o)
	return errors.Join(err, os.Remove(mutex))
}

// inside decides and writes.
func (f *foreign) inside(o *operation) error {
	text, err := os.ReadFile(f.Path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var found *sight
	if err == nil {
		if found, err = sightOf(text); err != nil {
			return err
		}
	}
	now := cutMs(f.shared())
	o.Lease = found
	if o.Code = refusalOf(o, found, now); o.Code != "" {
		return nil
	}
	switch o.Verb {
	case "release":
		return os.Remove(f.Path)
	case "renew":
		return f.renew(o, text, found, now)
	}
	o.Replaced = found
	fresh := foreignLease{
		o.Holder, "node", timeOf(now), timeOf(now + int64(o.Duration)), o.Duration.Seconds(), o.Token, nil,
	}
	if f.rand.IntN(2) == 0 {
		fresh.Vendor = map[string]any{"build": []any{7, "x"}}
	}
	content, err := json.MarshalIndent(fresh, "", "  ")
	if err != nil {
		return err
	}
	return f.write(o, append(content, '\n'))
}

func refusalOf(o *operation, found *sight, now int64) string {
	expired := found != nil && found.Expiry <= now
	switch acquires := o.Verb == "acquire" || o.Verb == "take-over"; {
	case acquires && found != nil && !expired:
		return CodeHeld
	case acquires && expired && o.Verb != "take-over":
		return CodeExpired
	case acquires:
		return ""
	case found == nil:
		return CodeAbsent
	case found.Holder != o.Holder:
		return CodeNotHolder
	case expired && o.Verb == "renew":
		return CodeExpired
	}
	return ""
}

// renew changes the two values in the text, as an implementation that keeps unknown members does.
func (f *foreign) renew(o *operation, text []byte, found *sight, now int64) error {
	until := max(now+int64(found.Duration), found.Expiry+int64(time.Millisecond))
	file := string(text)
	for member, value := range map[string][2]string{
		"expiresAt": {timeOf(found.Expiry), timeOf(until)}, "token": {found.Token, o.Token},
	} {
		was, is := fmt.Sprintf("%q: %q", member, value[0]), fmt.Sprintf("%q: %q", member, value[1])
		if strings.Count(file, was) != 1 {
			return fmt.Errorf("%s is not in\n%s", was, file)
		}
		file = strings.Replace(file, was, is, 1)
	}
	return f.write(o, []byte(file))
}

func timeOf(ns int64) string { return FormatTime(time.Unix(0, ns)) }

func (f *foreign) write(o *operation, content []byte) (err error) {
	stage, err := os.OpenFile(f.Path+".stage", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = stage.Write(content)
	if err := errors.Join(err, stage.Close(), os.Rename(f.Path+".stage", f.Path)); err != nil {
		return err
	}
	if back, err := os.ReadFile(f.Path); err != nil || string(back) != string(content) {
		return fmt.Errorf("it wrote\n%s\nand reads\n%s%v", content, back, err)
	}
	o.Lease, err = sightOf(content)
	return err
}

// Both implementations drive one fleet: never two unexpired holders, each success's bytes are there for the others to
// see, each renewal keeps the other's members, and the fence tokens of this one increase over all leases of the other.
func TestMixedWithAnotherImplementation(t *testing.T) {
	c := newChaos(t, 2, mixed)
	players := make([]*foreign, 3)
	over := make(chan struct{})
	var all sync.WaitGroup
	for i := range players {
		f := &foreign{job: c.job, rand: rand.New(rand.NewPCG(3, uint64(i)))}
		f.Name = fmt.Sprint("n", i)
		players[i] = f
		all.Go(func() {
			if err := f.work(over); err != nil {
				t.Error(err)
			}
		})
	}
	stop := sync.OnceFunc(func() { close(over); all.Wait() })
	t.Cleanup(stop)
	history := func() []*operation {
		all := c.history()
		for _, f := range players {
			f.mu.Lock()
			all = append(all, f.history...)
			f.mu.Unlock()
		}
		return all
	}
	c.work(3, 3*time.Second, func() bool { return len(ways(history())) == 4 })
	stop()
	c.checkMixed(history())
}

// The other implementation's own language and library, where Node is installed.
func TestMixedWithNode(t *testing.T) {
	testkit.NeedTool(t, "node")
	c := newChaos(t, 4, mixed)
	var nodes []*process
	for i := range 3 {
		nodes = append(nodes, c.node(fmt.Sprint("n", i)))
	}
	c.work(3, 4*time.Second, func() bool { return len(ways(c.history())) == 4 })
	for _, p := range nodes {
		p.over.Close()
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("node: %v", err)
		}
	}
	c.collect()
	c.checkMixed(c.history())
}

// mixed is the work of both: leases that last long enough for a poll of 10 ms to matter.
var mixed = job{Bound: 10 * time.Second, Compact: 24 << 10, Longest: 30 * time.Millisecond}

// node starts the script as one more participant.
func (c *chaos) node(name string) *process {
	c.Helper()
	j := c.job
	j.Name, j.Log = name, filepath.Join(filepath.Dir(c.dir), name+".log")
	arg, err := json.Marshal(j)
	if err != nil {
		c.Fatal(err)
	}
	p := &process{cmd: exec.Command("node", "testdata/node-participant.js", string(arg)), log: j.Log}
	p.cmd.Stderr = os.Stderr
	if p.over, err = p.cmd.StdinPipe(); err != nil {
		c.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	c.logs = append(c.logs, j.Log)
	return p
}

// checkMixed is what must hold of a run of both implementations.
func (c *chaos) checkMixed(history []*operation) {
	c.Helper()
	history = append(history, c.atLast())
	c.Logf("%d operations, %v: %v", len(history), c.counts, tally(history))
	checkLinearizable(c.T, history)
	c.checkJournal(history)
	c.tidy()
	met := ways(history)
	c.Log(met)
	if len(met) < 4 {
		c.Errorf("the two did not meet in every way: %v", met)
	}
}

// ways counts how the two implementations met: each renewed the other's leases, and took over from the other.
func ways(history []*operation) map[string]int {
	theirs := func(o *operation) bool { return strings.HasPrefix(o.ID, "n") }
	holders := map[string]bool{} // whose lease each holder's is
	for _, o := range history {
		if o.Answered && o.Code == "" && (o.Verb == "acquire" || o.Verb == "take-over") {
			holders[o.Holder] = theirs(o)
		}
	}
	met := map[string]int{}
	for _, o := range history {
		switch {
		case !o.Answered || o.Code != "":
		case o.Verb == "renew" && holders[o.Holder] != theirs(o):
			met[fmt.Sprintf("renewed the other's, theirs %v", theirs(o))]++
		case o.Replaced != nil && holders[o.Replaced.Holder] != theirs(o):
			met[fmt.Sprintf("took over from the other, theirs %v", theirs(o))]++
		}
	}
	return met
}
