package lease

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// msec is the unit of the invented histories.
const msec = int64(time.Millisecond)

// leased is a lease of an invented history: acquired at one millisecond, for 100.
func leased(holder, token string, fence uint64, acquired int64) *sight {
	return &sight{
		Holder: holder, Token: token, Fence: fence, Acquired: acquired * msec, Expiry: (acquired + 100) * msec,
		Duration: 100 * time.Millisecond, Rest: holder,
	}
}

// did is an operation that began and returned at those milliseconds.
func did(verb, holder, token string, from, to int64, code string, l *sight) *operation {
	o := &operation{
		ID: verb + token, Verb: verb, Holder: holder, Token: token, Call: from * msec, Return: to * msec, Answered: true,
		Code: code, Lease: l,
	}
	if token != "" {
		o.Duration = 100 * time.Millisecond
	}
	return o
}

func (o *operation) replacing(l *sight) *operation {
	o.Replaced = l
	return o
}

func (o *operation) died() *operation {
	o.Answered, o.Code, o.Lease = false, "", nil
	return o
}

// The checker must be able to fail: each history that is marked illegal has one thing in it that this protocol excludes.
func TestModelTellsLegalHistoriesFromIllegalOnes(t *testing.T) {
	a, b := leased("a", "ta", 1, 10), leased("b", "tb", 2, 10)
	later := leased("b", "tb", 2, 150)
	renewed := leased("a", "tr", 1, 50)
	acquireA := did("acquire", "a", "ta", 10, 20, "", a)
	for _, c := range []struct {
		name    string
		history []*operation
		want    porcupine.CheckResult
	}{
		{"one wins, the other finds it held", []*operation{acquireA, did("acquire", "b", "tb", 10, 20, CodeHeld, a)}, porcupine.Ok},
		{"two winners", []*operation{acquireA, did("acquire", "b", "tb", 10, 20, "", b)}, porcupine.Illegal},
		{"held by nobody", []*operation{did("acquire", "b", "tb", 10, 20, CodeHeld, a)}, porcupine.Illegal},
		{"a release between two acquires", []*operation{acquireA, did("release", "a", "", 21, 22, "", a), did("acquire", "b", "tb", 30, 31, "", leased("b", "tb", 2, 30))}, porcupine.Ok},
		{"a fence token twice", []*operation{acquireA, did("release", "a", "", 21, 22, "", a), did("acquire", "b", "tb", 30, 31, "", leased("b", "tb", 1, 30))}, porcupine.Illegal},
		{"a release of another's lease", []*operation{acquireA, did("release", "b", "", 21, 22, "", a)}, porcupine.Illegal},
		{"a takeover after the expiry", []*operation{acquireA, did("take-over", "b", "tb", 150, 160, "", later).replacing(a)}, porcupine.Ok},
		{"a takeover that began before the expiry", []*operation{acquireA, did("take-over", "b", "tb", 100, 120, "", leased("b", "tb", 2, 110)).replacing(a)}, porcupine.Ok},
		{"a takeover decided before the expiry", []*operation{acquireA, did("take-over", "b", "tb", 100, 120, "", leased("b", "tb", 2, 109)).replacing(a)}, porcupine.Illegal},
		{"a takeover over before the expiry", []*operation{acquireA, did("take-over", "b", "tb", 100, 109, "", leased("b", "tb", 2, 105)).replacing(a)}, porcupine.Illegal},
		{"an acquire of an expired lease", []*operation{acquireA, did("acquire", "b", "tb", 150, 160, "", later)}, porcupine.Illegal},
		{"a takeover that names another predecessor", []*operation{acquireA, did("take-over", "b", "tb", 150, 160, "", later).replacing(leased("a", "tx", 1, 10))}, porcupine.Illegal},
		{"expired, but not yet", []*operation{acquireA, did("acquire", "b", "tb", 30, 40, CodeExpired, a)}, porcupine.Illegal},
		{"held, but no more", []*operation{acquireA, did("acquire", "b", "tb", 110, 120, CodeHeld, a)}, porcupine.Illegal},
		{"held or expired, it ended meanwhile", []*operation{acquireA, did("acquire", "b", "tb", 109, 120, CodeHeld, a), did("acquire", "c", "tc", 109, 120, CodeExpired, a)}, porcupine.Ok},
		{"a renewal", []*operation{acquireA, did("renew", "a", "tr", 50, 55, "", renewed)}, porcupine.Ok},
		{"a renewal after the expiry", []*operation{acquireA, did("renew", "a", "tr", 110, 115, "", leased("a", "tr", 1, 112))}, porcupine.Illegal},
		{"a renewal that loses a member", []*operation{acquireA, did("renew", "a", "tr", 50, 55, "", &sight{"a", "tr", 1, 50 * msec, 150 * msec, 100 * time.Millisecond, ""})}, porcupine.Illegal},
		{"a renewal that changes the fence token", []*operation{acquireA, did("renew", "a", "tr", 50, 55, "", leased("a", "tr", 2, 50))}, porcupine.Illegal},
		{"a renewal that moves the expiry back", []*operation{acquireA, did("renew", "a", "tr", 50, 55, "", leased("a", "tr", 1, 9))}, porcupine.Illegal},
		{"a renewal that counts from before it began", []*operation{acquireA, did("renew", "a", "tr", 50, 55, "", leased("a", "tr", 1, 48))}, porcupine.Illegal},
		{"a renewal lost to a release", []*operation{acquireA, did("renew", "a", "tr", 50, 55, "", renewed), did("release", "a", "", 60, 61, "", a)}, porcupine.Illegal},
		{"a stale look", []*operation{acquireA, did("renew", "a", "tr", 50, 55, "", renewed), did("status", "", "", 60, 61, "held", a)}, porcupine.Illegal},
		{"a look during a renewal", []*operation{acquireA, did("renew", "a", "tr", 50, 55, "", renewed), did("status", "", "", 52, 53, "held", a), did("status", "", "", 53, 54, "held", renewed)}, porcupine.Ok},
		{"two looks that see it come and go back", []*operation{acquireA, did("renew", "a", "tr", 50, 55, "", renewed), did("status", "", "", 51, 52, "held", renewed), did("status", "", "", 53, 54, "held", a)}, porcupine.Illegal},
		{"an acquire that died and took place", []*operation{did("acquire", "a", "ta", 10, 20, "", nil).died(), did("status", "", "", 30, 31, "held", a)}, porcupine.Ok},
		{"an acquire that died and did not", []*operation{did("acquire", "a", "ta", 10, 20, "", nil).died(), did("status", "", "", 30, 31, "free", nil)}, porcupine.Ok},
		{"an acquire that took place after its death", []*operation{did("acquire", "a", "ta", 10, 20, "", nil).died(), did("status", "", "", 30, 31, "free", nil), did("status", "", "", 32, 33, "held", a)}, porcupine.Illegal},
		{"a release that died and took place", []*operation{acquireA, did("release", "a", "", 21, 25, "", nil).died(), did("status", "", "", 30, 31, "free", nil)}, porcupine.Ok},
		{"a lease that went away by itself", []*operation{acquireA, did("status", "", "", 30, 31, "free", nil)}, porcupine.Illegal},
		{"a loss that had published, and it stayed", []*operation{wrote(did("acquire", "a", "ta", 10, 20, CodeChanged, nil), a), did("status", "", "", 30, 31, "held", a)}, porcupine.Ok},
		{"a loss that had published, and it did not", []*operation{wrote(did("acquire", "a", "ta", 10, 20, CodeChanged, nil), a), did("status", "", "", 30, 31, "free", nil)}, porcupine.Ok},
		{"a loss that had published nothing, and did", []*operation{did("acquire", "a", "ta", 10, 20, CodeChanged, nil), did("status", "", "", 30, 31, "held", a)}, porcupine.Illegal},
		{"an answer that is none", []*operation{did("acquire", "a", "ta", 10, 20, "unstable", nil)}, porcupine.Illegal},
	} {
		t.Run(c.name, func(t *testing.T) {
			result, _ := linearizable(c.history, time.Minute)
			equal(t, "the verdict", result, c.want)
		})
	}
}

func wrote(o *operation, l *sight) *operation {
	o.Written = l
	return o
}
