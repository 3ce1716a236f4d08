package lease

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"holdfast/pkg/strictjson"
)

// operation is one call of a participant, as it reports it. Times are of one clock that all participants share and that
// nobody sets, in nanoseconds: invocations, responses, and what the participants take for the wall clock.
type operation struct {
	ID       string
	Verb     string        // "acquire", "take-over", "renew", "release" or "status"
	Holder   string        // chosen beforehand by an acquire; else whose lease is meant
	Token    string        // chosen beforehand by what publishes a lease
	Duration time.Duration // asked for; 0 keeps the term of a renewal
	Call     int64

	// The response. An operation without one was cut off by its process's death, which is its Return then.
	Return   int64
	Answered bool
	Code     string // "" is success; of a status, its state
	Lease    *sight // the outcome's, or what a refusal was decided on
	Replaced *sight // by a takeover
	Written  *sight // by a mutation that does not vouch for it
}

// sight is a lease as an operation saw it.
type sight struct {
	Holder, Token    string
	Fence            uint64
	Acquired, Expiry int64
	Duration         time.Duration
	Rest             string // all members that a renewal keeps, in their order
}

// sighted describes a lease.
func sighted(l *Lease) *sight {
	if l == nil {
		return nil
	}
	s, err := sightOf(l.Encode())
	if err != nil {
		panic(err)
	}
	return s
}

func sightOf(file []byte) (*sight, error) {
	l, err := Parse(file)
	if err != nil {
		return nil, err
	}
	var acquired time.Time
	if err := acquired.UnmarshalText([]byte(l.AcquiredAt)); err != nil {
		return nil, err
	}
	rest, err := restOf(file)
	return &sight{
		Holder: l.HolderID, Token: l.Token, Fence: l.Fence, Acquired: acquired.UnixNano(), Expiry: l.ExpiresAt.UnixNano(),
		Duration: time.Duration(math.Round(l.Duration*1e6)) * time.Microsecond, Rest: rest,
	}, err
}

func restOf(file []byte) (string, error) {
	o, err := strictjson.Parse(file)
	if err != nil {
		return "", err
	}
	var all map[string]any
	if err := strictjson.DecodeOpen(file, &all); err != nil {
		return "", err
	}
	rest := ""
	for _, name := range o.Names() {
		if !slices.Contains([]string{"expiresAt", "durationSeconds", "token"}, name) {
			rest += fmt.Sprint(name, "=", all[name], "; ")
		}
	}
	return rest, nil
}

// unknown stands for an expiry that only a participant knew which died before it told.
const unknown = -1

// state is the model's: one register, and the highest fence token so far.
type state struct {
	Held           bool // there is a lease file
	Holder, Token  string
	Fence          uint64
	Expiry         int64
	Duration       time.Duration
	Rest           string
	Highest        uint64
	FenceUncertain bool // the lease of an acquire that died; its number is above Highest
}

// register is the sequential specification: every operation happens at one moment between its call and its return, and
// what it says of the time has to be possible for some moment in between.
var register = porcupine.NondeterministicModel{
	Init: func() []any { return []any{state{}} },
	Step: func(s, in, _ any) (next []any) {
		for _, n := range in.(*operation).from(s.(state)) {
			next = append(next, n)
		}
		return next
	},
	DescribeOperation: func(in, _ any) string { return in.(*operation).String() },
}

// from returns the states that the operation can leave behind, when s is what it found; none when it cannot have been so.
func (o *operation) from(s state) []state {
	switch {
	case !o.Answered:
		return append(o.applied(s, nil), s)
	case o.Verb == "status":
		return o.looked(s, map[string]string{string(StateFree): CodeAbsent, string(StateHeld): CodeHeld, string(StateExpired): CodeExpired}[o.Code])
	case o.Code == "", o.Code == codeSeen:
		return o.applied(s, o.Lease)
	case o.Code == CodeChanged && o.Written != nil:
		return append(o.applied(s, o.Written), s)
	case o.Code == CodeChanged, o.Code == CodeClaimTimeout:
		return []state{s}
	}
	return o.looked(s, o.Code)
}

// looked is a refusal, or a status: it tells the state and changes nothing. A lease whose expiry nobody knew is known
// from now on.
func (o *operation) looked(s state, code string) []state {
	if code == CodeAbsent {
		return s.when(!s.Held && o.Lease == nil)
	}
	if !s.Held || o.Lease == nil {
		return nil
	}
	s, ok := s.matches(o.Lease)
	switch code {
	case CodeHeld:
		return s.when(ok && s.Expiry > o.Call)
	case CodeExpired:
		mine := o.Verb != "renew" || s.Holder == o.Holder
		return s.when(ok && mine && s.Expiry <= o.Return)
	case CodeNotHolder:
		return s.when(ok && s.Holder != o.Holder)
	}
	return nil // an answer that no verb may give here
}

func (s state) when(ok bool) []state {
	if !ok {
		return nil
	}
	return []state{s}
}

// matches reports whether the lease that was seen is the state's, and takes over what was not known of it.
func (s state) matches(l *sight) (state, bool) {
	if s.Expiry == unknown {
		s.Expiry = l.Expiry
	}
	if s.FenceUncertain && l.Fence > s.Highest {
		s.Fence, s.Rest, s.Highest, s.FenceUncertain = l.Fence, l.Rest, l.Fence, false
	}
	return s, s.Holder == l.Holder && s.Token == l.Token && s.Fence == l.Fence && s.Expiry == l.Expiry &&
		s.Duration == l.Duration && s.Rest == l.Rest
}

// applied is the operation carried out; l is the lease it tells of, nil when it told nothing.
func (o *operation) applied(s state, l *sight) []state {
	switch o.Verb {
	case "acquire", "take-over":
		return o.acquired(s, l)
	case "renew":
		return o.renewed(s, l)
	case "release":
		return o.released(s, l)
	}
	return s.when(l == nil)
}

func (o *operation) acquired(s state, l *sight) []state {
	if s.Held && (o.Verb != "take-over" || s.Expiry > o.Return) {
		return nil
	}
	next := state{
		Held: true, Holder: o.Holder, Token: o.Token, Expiry: unknown, Duration: o.Duration, Highest: s.Highest, FenceUncertain: true,
	}
	if s.FenceUncertain {
		next.Highest++ // it had one number, at least
	}
	if l == nil {
		return []state{next}
	}
	if o.Code == "" { // then it also says what it replaced, and had decided by the clock
		if s.Held != (o.Replaced != nil) {
			return nil
		}
		if s.Held {
			found, ok := s.matches(o.Replaced)
			if !ok || l.Acquired < found.Expiry {
				return nil
			}
			next.Highest = max(next.Highest, found.Highest)
		}
	}
	next.Expiry = l.Expiry
	next.Fence, next.Rest, next.FenceUncertain = l.Fence, l.Rest, false
	if l.Fence > 0 { // another implementation's has none
		if l.Fence <= next.Highest {
			return nil
		}
		next.Highest = l.Fence
	}
	return next.when(l.Holder == o.Holder && l.Token == o.Token && o.counted(l, o.Duration, 0))
}

// counted reports whether the lease's expiry counts from a moment within the call, or is least. The file's duration is a
// fraction of seconds, which may lose a nanosecond.
func (o *operation) counted(l *sight, d time.Duration, least int64) bool {
	return l.Duration == d && l.Expiry >= max(cutMs(o.Call+int64(d)-1), least) && l.Expiry <= max(cutMs(o.Return+int64(d)), least)
}

func cutMs(ns int64) int64 { return ns - ns%int64(time.Millisecond) }

func (o *operation) renewed(s state, l *sight) []state {
	if !s.Held || s.Holder != o.Holder || s.Expiry != unknown && s.Expiry <= o.Call {
		return nil
	}
	next := s
	next.Token, next.Expiry = o.Token, unknown
	if o.Duration > 0 {
		next.Duration = o.Duration
	}
	if l == nil {
		return []state{next}
	}
	least := int64(0)
	if s.Expiry != unknown {
		least = s.Expiry + int64(time.Millisecond)
	}
	next, ok := next.matches(l)
	return next.when(ok && (s.Expiry == unknown || o.counted(l, next.Duration, least)))
}

func (o *operation) released(s state, l *sight) []state {
	if !s.Held || s.Holder != o.Holder {
		return nil
	}
	found, ok := s, true
	if l != nil {
		found, ok = s.matches(l)
	}
	highest := found.Highest
	if found.FenceUncertain {
		highest++
	}
	return state{Highest: highest}.when(ok)
}

func (o *operation) String() string {
	text := fmt.Sprintf("%s %s(%s) -> ", o.ID, o.Verb, o.Holder)
	switch {
	case !o.Answered:
		return text + "died"
	case o.Code != "":
		text += o.Code
	}
	if o.Lease != nil {
		text += fmt.Sprintf(" %s/%s #%d until %d", o.Lease.Holder, o.Lease.Token, o.Lease.Fence, o.Lease.Expiry)
	}
	return text
}

// settled turns the guess about an operation that died into knowledge, when somebody saw the lease it published.
func settled(history []*operation) []*operation {
	known := map[string]*sight{}
	for _, o := range history {
		for _, l := range []*sight{o.Lease, o.Replaced, o.Written} {
			if l != nil {
				known[l.Token] = l
			}
		}
	}
	var all []*operation
	for _, o := range history {
		if l := known[o.Token]; !o.Answered && o.Token != "" && l != nil {
			settled := *o
			settled.Answered, settled.Code, settled.Lease = true, codeSeen, l
			o = &settled
		}
		all = append(all, o)
	}
	return all
}

// codeSeen marks an operation that died after others could see its lease.
const codeSeen = "seen"

// linearizable asks whether the operations can have happened one after another, each between its call and its return.
func linearizable(history []*operation, limit time.Duration) (porcupine.CheckResult, porcupine.LinearizationInfo) {
	var ops []porcupine.Operation
	for i, o := range settled(history) {
		ops = append(ops, porcupine.Operation{ClientId: i % 64, Input: o, Call: o.Call, Return: o.Return})
	}
	return porcupine.CheckOperationsVerbose(register.ToModel(), ops, limit)
}
