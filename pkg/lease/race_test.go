package lease

import (
	"strings"
	"testing"
	"time"
)

// race is two mutations whose steps interleave in one exact way: the first stops at a step, the second runs, the first
// goes on.
type race struct {
	name    string
	lease   *Lease // there at the start; nil for none
	first   act    // alice's
	second  act    // bob's
	between time.Duration
	want    verdicts
}

// verdicts is what has to come out.
type verdicts struct {
	first, second string // codes; "" is success
	how           string // how the one that lost says the lease changed
	holder        string // whom the file names afterwards; "" for no lease
	fence         uint64 // of the lease in the file
}

// start makes the rig of a race; alice and bob are its participants.
func (c race) start(t *testing.T) (r *rig, alice, bob *player) {
	r = newRig(t)
	if c.lease != nil {
		r.plant(c.lease.Encode())
	}
	return r, r.player("alice"), r.player("bob")
}

func (c race) check(r *rig, first, second error) {
	r.Helper()
	equal(r.T, "the first one's code", errCode(first), c.want.first)
	equal(r.T, "the second one's code", errCode(second), c.want.second)
	for _, err := range []error{first, second} {
		if errCode(err) == CodeChanged {
			refusal := refused(r.T, err, CodeChanged)
			if c.want.how == "" || !strings.Contains(refusal.How, c.want.how) {
				r.Errorf("it says %q, want %q", refusal.How, c.want.how)
			}
			if refusal.Written != nil {
				r.Error("a loser says that it published a lease")
			}
		}
	}
	r.names(c.want.holder)
	if l := r.lease(); l != nil {
		equal(r.T, "the fence token", l.Fence, c.want.fence)
	}
	r.tidy()
	grow(r.T, fences(r.entries()))
}

func valid() *Lease   { return planted("old", ms.Add(time.Minute)) }
func expired() *Lease { return planted("old", ms) }

// The first has observed and not yet entered the claim; the second passes from beginning to end. The first then sees
// that the lease is not what it decided on, says how, and leaves the second's lease as it is. Every pair is here in both
// orders; a pair that cannot meet (an acquire needs an expired or no lease, a renewal a valid one) meets as the clock or
// the states allow.
func TestSecondMutationPassesBetweenObservationAndClaim(t *testing.T) {
	for _, c := range []race{
		{"acquire, acquire", nil, acquire, acquire, 0, verdicts{CodeChanged, "", "a lease of bob-1 on host-of-bob has appeared", "bob-1", 1}},
		{"acquire, take-over", nil, acquire, takeOver, 0, verdicts{CodeChanged, "", "a lease of bob-1 on host-of-bob has appeared", "bob-1", 1}},
		{"take-over, acquire", nil, takeOver, acquire, 0, verdicts{CodeChanged, "", "a lease of bob-1 on host-of-bob has appeared", "bob-1", 1}},
		{"take-over, take-over", expired(), takeOver, takeOver, 0, verdicts{CodeChanged, "", "the lease differs, it names bob-1", "bob-1", 8}},
		{"renew, take-over", valid(), renewOf("old"), takeOver, time.Minute, verdicts{CodeChanged, "", "the lease differs, it names bob-1", "bob-1", 8}},
		{"release, take-over", expired(), releaseOf("old"), takeOver, 0, verdicts{CodeChanged, "", "the lease differs, it names bob-1", "bob-1", 8}},
		{"take-over, release", expired(), takeOver, releaseOf("old"), 0, verdicts{CodeChanged, "", "the lease is gone", "", 0}},
		{"renew, release", valid(), renewOf("old"), releaseOf("old"), 0, verdicts{CodeChanged, "", "the lease is gone", "", 0}},
		{"release, renew", valid(), releaseOf("old"), renewOf("old"), 0, verdicts{CodeChanged, "", "the lease differs, it names old", "old", 7}},
		{"renew, renew", valid(), renewOf("old"), renewOf("old"), 0, verdicts{CodeChanged, "", "the lease differs, it names old", "old", 7}},
		{"release, release", valid(), releaseOf("old"), releaseOf("old"), 0, verdicts{CodeChanged, "", "the lease is gone", "", 0}},
		{"release, acquire", valid(), releaseOf("old"), acquire, 0, verdicts{"", CodeHeld, "", "", 0}},
		{"renew, acquire", valid(), renewOf("old"), acquire, 0, verdicts{"", CodeHeld, "", "old", 7}},
		{"take-over, renew", expired(), takeOver, renewOf("old"), 0, verdicts{"", CodeExpired, "", "alice-1", 8}},
		{"acquire, release", nil, acquire, releaseOf("old"), 0, verdicts{"", CodeAbsent, "", "alice-1", 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, alice, bob := c.start(t)
			var second error
			var after string
			alice.meanwhile("observed", func() {
				r.add(c.between)
				_, second = c.second(bob)
				after = r.bytes("")
			})
			_, first := c.first(alice)
			c.check(r, first, second)
			if errCode(first) == CodeChanged {
				equal(t, "the file", r.bytes(""), after)
			}
		})
	}
}

// A renewal by a clock that is late against the successor's: the takeover has only observed when the renewal passes. The
// takeover then finds another expiry, and the holder goes on.
func TestRenewalPassesBeforeTheTakeOverThatSawItExpired(t *testing.T) {
	c := race{lease: valid(), want: verdicts{CodeChanged, "", "the lease differs, it names old", "old", 7}}
	r, _, _ := c.start(t)
	ahead := r.playerWith("ahead", &clock{now: ms.Add(time.Minute)})
	holder := r.player("holder")
	var second error
	ahead.meanwhile("observed", func() { _, second = renewOf("old")(holder) })
	_, first := takeOver(ahead)
	c.check(r, first, second)
}

// inside is the steps of a mutation at which it has the claim and has not changed the file.
var inside = []string{"claimed", "compared"}

// The first is inside its claim, before its write; the second observes the old state, and waits. The first passes; the
// second sees a lease it had not decided on.
func TestSecondMutationWaitsForTheClaimOfTheFirst(t *testing.T) {
	for _, c := range []race{
		{"acquire, acquire", nil, acquire, acquire, 0, verdicts{"", CodeChanged, "a lease of alice-1 on host-of-alice has appeared", "alice-1", 1}},
		{"take-over, take-over", expired(), takeOver, takeOver, 0, verdicts{"", CodeChanged, "the lease differs, it names alice-1", "alice-1", 8}},
		{"take-over, release", expired(), takeOver, releaseOf("old"), 0, verdicts{"", CodeChanged, "the lease differs, it names alice-1", "alice-1", 8}},
		{"release, take-over", expired(), releaseOf("old"), takeOver, 0, verdicts{"", CodeChanged, "the lease is gone", "", 0}},
		{"release, renew", valid(), releaseOf("old"), renewOf("old"), 0, verdicts{"", CodeChanged, "the lease is gone", "", 0}},
		{"renew, release", valid(), renewOf("old"), releaseOf("old"), 0, verdicts{"", CodeChanged, "the lease differs, it names old", "old", 7}},
		{"renew, renew", valid(), renewOf("old"), renewOf("old"), 0, verdicts{"", CodeChanged, "the lease differs, it names old", "old", 7}},
		{"release, acquire", valid(), releaseOf("old"), acquire, 0, verdicts{"", CodeHeld, "", "", 0}},
		{"acquire, release", nil, acquire, releaseOf("alice-1"), 0, verdicts{"", CodeAbsent, "", "alice-1", 1}},
		{"acquire, renew", nil, acquire, renewOf("alice-1"), 0, verdicts{"", CodeAbsent, "", "alice-1", 1}},
	} {
		for _, step := range inside {
			t.Run(c.name+"/"+step, func(t *testing.T) { c.waits(t, step) })
		}
	}
}

// The renewal has decided, inside its claim, that the lease is valid; now it expires, and a takeover begins. The renewal
// passes, for nobody else could have had the lease meanwhile.
func TestRenewalDecidedBeforeTheExpiryHoldsOffATakeOver(t *testing.T) {
	race{
		lease: valid(), first: renewOf("old"), second: takeOver, between: time.Minute,
		want: verdicts{"", CodeChanged, "the lease differs, it names old", "old", 7},
	}.waits(t, "compared")
}

// The first has written and is still inside its claim: the second decides on what is in the file by now, waits, and acts.
func TestSecondMutationActsOnWhatTheFirstWrote(t *testing.T) {
	for _, c := range []race{
		{"acquire, acquire", nil, acquire, acquire, 0, verdicts{"", CodeHeld, "", "alice-1", 1}},
		{"acquire, release", nil, acquire, releaseOf("alice-1"), 0, verdicts{"", "", "", "", 0}},
		{"acquire, renew", nil, acquire, renewOf("alice-1"), 0, verdicts{"", "", "", "alice-1", 1}},
		{"release, acquire", valid(), releaseOf("old"), acquire, 0, verdicts{"", "", "", "bob-1", 8}},
		{"take-over, take-over", expired(), takeOver, takeOver, 0, verdicts{"", CodeHeld, "", "alice-1", 8}},
		{"take-over, release", expired(), takeOver, releaseOf("old"), 0, verdicts{"", CodeNotHolder, "", "alice-1", 8}},
		{"take-over, renew", expired(), takeOver, renewOf("old"), 0, verdicts{"", CodeNotHolder, "", "alice-1", 8}},
		{"take-over, take-over of that", expired(), takeOver, takeOver, 900 * time.Second, verdicts{"", "", "", "bob-1", 9}},
		{"renew, take-over", valid(), renewOf("old"), takeOver, time.Minute, verdicts{"", CodeHeld, "", "old", 7}},
		{"renew, release", valid(), renewOf("old"), releaseOf("old"), 0, verdicts{"", "", "", "", 0}},
		{"release, renew", valid(), releaseOf("old"), renewOf("old"), 0, verdicts{"", CodeAbsent, "", "", 0}},
	} {
		for _, step := range []string{"applied", "confirmed"} {
			t.Run(c.name+"/"+step, func(t *testing.T) { c.waits(t, step) })
		}
	}
}

// waits stops the first at a step inside its claim until the second has decided, and either has its answer or is about
// to enter the claim.
func (c race) waits(t *testing.T, step string) {
	r, alice, bob := c.start(t)
	bob.iv.claimBound = time.Minute
	decided := make(chan bool, 2)
	bob.meanwhile("observed", func() { decided <- true })
	answer := make(chan error, 1)
	alice.meanwhile(step, func() {
		r.add(c.between)
		go func() {
			_, err := c.second(bob)
			answer <- err
			decided <- true
		}()
		<-decided
	})
	_, first := c.first(alice)
	c.check(r, first, <-answer)
}
