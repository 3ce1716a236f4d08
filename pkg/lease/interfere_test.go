package lease

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// edit is what a program that takes no claim does to the lease file. "other" is the lease it puts there.
type edit struct {
	name string
	do   func(*rig)
	how  string // how a mutation that finds it says so
}

func other() []byte { return planted("other", ms.Add(time.Hour)).Encode() }

var (
	appears = edit{"a lease appears", func(r *rig) { r.plant(other()) }, "a lease of other on elsewhere has appeared"}
	gone    = edit{"the lease goes", func(r *rig) { r.remove("") }, "the lease is gone"}
	differs = edit{"the lease differs", func(r *rig) { r.plant(other()) }, "the lease differs, it names other on elsewhere"}
)

// A non-participant edits the file between two steps, before this program writes or after. The answer is changed, with
// how; the file stays as the editor left it; and only when this call had published a lease does the answer carry it.
// (Between the second comparison and the rename or unlink nothing can notice an edit; see the package comment.)
func TestAnEditBetweenTwoStepsIsNoticed(t *testing.T) {
	before := []string{"observed", "claimed", "journaled"}
	for _, c := range []struct {
		name  string
		lease *Lease
		do    act
		edit  edit
		steps []string
	}{
		{"acquire", nil, acquire, appears, append(before, "compared")},
		{"take-over of nothing", nil, takeOver, appears, append(before, "compared")},
		{"take-over", expired(), takeOver, gone, append(before, "compared")},
		{"take-over", expired(), takeOver, differs, before},
		{"renew", valid(), renewOf("old"), gone, []string{"observed", "claimed", "compared"}},
		{"renew", valid(), renewOf("old"), differs, []string{"observed", "claimed"}},
		{"release", valid(), releaseOf("old"), gone, []string{"observed", "claimed"}},
		{"release", valid(), releaseOf("old"), differs, []string{"observed", "claimed"}},
		{"release, after it removed the lease", valid(), releaseOf("old"), differs, []string{"applied"}},
	} {
		for _, step := range c.steps {
			t.Run(c.name+"/"+c.edit.name+"/"+step, func(t *testing.T) { c.edit.between(t, c.lease, c.do, step) })
		}
	}
}

func (e edit) between(t *testing.T, start *Lease, do act, step string) {
	r := newRig(t)
	if start != nil {
		r.plant(start.Encode())
	}
	p := r.player("alice")
	left := "the step was not reached"
	p.meanwhile(step, func() { e.do(r); left = r.bytes("") })
	_, err := do(p)
	refusal := refused(t, err, CodeChanged)
	equal(t, "how", refusal.How, e.how)
	equal(t, "the file", r.bytes(""), left)
	if refusal.Written != nil {
		t.Error("it says that it published a lease")
	}
	r.tidy()
	if step != "journaled" && step != "compared" && fences(r.entries()) != nil {
		t.Error("a number was taken before the first comparison")
	}
}

// After the lease was published an edit cannot be told from one that would have followed at once; the answer carries the
// lease that was published.
func TestAnEditAfterThePublicationIsTold(t *testing.T) {
	for _, c := range []struct {
		name  string
		lease *Lease
		do    act
		edit  edit
	}{
		{"acquire", nil, acquire, gone},
		{"acquire", nil, acquire, edit{"another lease", func(r *rig) { r.plant(other()) }, "a lease of other on elsewhere has appeared"}},
		{"take-over", expired(), takeOver, gone},
		{"take-over", expired(), takeOver, differs},
		{"renew", valid(), renewOf("old"), gone},
		{"renew", valid(), renewOf("old"), differs},
	} {
		t.Run(c.name+"/"+c.edit.name, func(t *testing.T) {
			r := newRig(t)
			if c.lease != nil {
				r.plant(c.lease.Encode())
			}
			p := r.player("alice")
			var published *Lease
			left := ""
			p.meanwhile("applied", func() { published = r.lease(); c.edit.do(r); left = r.bytes("") })
			_, err := c.do(p)
			refusal := refused(t, err, CodeChanged)
			equal(t, "how", refusal.How, c.edit.how)
			equal(t, "the file", r.bytes(""), left)
			if refusal.Written == nil {
				t.Fatal("it does not say what it published")
			}
			equal(t, "what it published", string(refusal.Written.Encode()), string(published.Encode()))
			if !strings.Contains(refusal.Error(), "had published a lease of "+published.HolderID) {
				t.Errorf("the reason does not say so: %v", refusal)
			}
			r.tidy()
		})
	}
}

// What cannot be read any more is told as it is, and stays.
func TestAFileThatBecomesUnreadableIsLeftAlone(t *testing.T) {
	torn := []byte(`{"holderId": "ol`)
	for _, c := range []struct {
		step, code string
	}{
		{"observed", CodeCorrupt}, {"claimed", CodeCorrupt}, {"journaled", CodeCorrupt}, {"applied", CodeChanged},
	} {
		t.Run(c.step, func(t *testing.T) {
			r := newRig(t)
			r.plant(expired().Encode())
			p := r.player("alice")
			p.meanwhile(c.step, func() { r.plant(torn) })
			_, err := takeOver(p)
			refusal := refused(t, err, c.code)
			equal(t, "the file", r.bytes(""), string(torn))
			equal(t, "published", refusal.Written != nil, c.step == "applied")
			r.tidy()
		})
	}
}

// forced removes alice's claim by force and lets bob take the lease: what an operator who is wrong about the claim causes.
func (r *rig) forced(bob *player) {
	r.Helper()
	r.remove(".mutex")
	if _, err := takeOver(bob); err != nil {
		r.Errorf("bob, after the claim was cleared: %v", err)
	}
}

// The claim is cleared by force at each step, and another becomes the holder. Up to the second comparison nothing of the
// first one's reaches the file; after it the answer says what was published. The other's claim is never removed, and no
// number is used twice.
func TestClaimClearedByForceAtEachStep(t *testing.T) {
	late := 2 * time.Hour // by which bob's clock is ahead, so that he finds any lease expired
	for _, c := range []struct {
		name  string
		lease *Lease
		do    act
		step  string
		holds string // whom the file names at last
		wrote bool
	}{
		{"acquire", nil, acquire, "claimed", "bob-1", false},
		{"acquire", nil, acquire, "journaled", "bob-1", false},
		{"acquire", nil, acquire, "compared", "bob-1", false}, // it creates only where nothing is
		{"acquire", nil, acquire, "applied", "bob-1", true},
		{"acquire", nil, acquire, "confirmed", "bob-1", true},
		{"take-over", expired(), takeOver, "claimed", "bob-1", false},
		{"take-over", expired(), takeOver, "journaled", "bob-1", false},
		{"take-over", expired(), takeOver, "compared", "alice-1", true}, // the one moment that nothing guards
		{"take-over", expired(), takeOver, "applied", "bob-1", true},
		{"take-over", expired(), takeOver, "confirmed", "bob-1", true},
		{"renew", valid(), renewOf("old"), "claimed", "bob-1", false},
		{"renew", valid(), renewOf("old"), "compared", "old", true},
		{"renew", valid(), renewOf("old"), "applied", "bob-1", true},
		{"renew", valid(), renewOf("old"), "confirmed", "bob-1", true},
		{"release", valid(), releaseOf("old"), "claimed", "bob-1", false},
		{"release", valid(), releaseOf("old"), "compared", "", false},
		{"release", valid(), releaseOf("old"), "applied", "bob-1", false},
		{"release", valid(), releaseOf("old"), "confirmed", "bob-1", false},
	} {
		t.Run(c.name+"/"+c.step, func(t *testing.T) {
			r := newRig(t)
			if c.lease != nil {
				r.plant(c.lease.Encode())
			}
			alice, bob := r.player("alice"), r.playerWith("bob", &clock{now: t0.Add(late)})
			alice.meanwhile(c.step, func() { r.forced(bob) })
			_, err := c.do(alice)
			refusal := refused(t, err, CodeChanged)
			equal(t, "it says what it wrote", refusal.Written != nil, c.wrote)
			r.names(c.holds)
			r.tidy()
			numbers := fences(r.entries())
			grow(t, numbers)
			if _, err := takeOver(r.playerWith("carol", &clock{now: t0.Add(2 * late)})); err != nil {
				t.Fatalf("the next one: %v", err)
			}
			if next := fences(r.entries()); len(next) != len(numbers)+1 {
				t.Errorf("numbers were %v and are %v", numbers, next)
			}
			grow(t, fences(r.entries()))
		})
	}
}

// A claim that is not ours any more is somebody's: leaving does not remove it.
func TestLeavingKeepsTheClaimOfAnother(t *testing.T) {
	for _, step := range []string{"claimed", "journaled", "compared", "applied", "confirmed"} {
		t.Run(step, func(t *testing.T) {
			r := newRig(t)
			p := r.player("alice")
			p.meanwhile(step, func() {
				r.write(r.at(".theirs"), []byte("theirs\n")) // first, so that it cannot get the inode of ours
				r.remove(".mutex")
				if err := os.Rename(r.at(".theirs"), r.at(".mutex")); err != nil {
					t.Error(err)
				}
			})
			_, err := acquire(p)
			refusal := refused(t, err, CodeChanged)
			equal(t, "the claim", r.bytes(".mutex"), "theirs\n")
			if refusal.Written == nil || !strings.Contains(refusal.How, "cleared by force") {
				t.Errorf("it says %v", refusal)
			}
		})
	}
}

// The stage is nobody's but the claim's holder: what was left there before is removed, whatever it is; what appears there
// while this call is inside its claim is a foreign hand, and stays.
func TestStageOfAnother(t *testing.T) {
	makers := map[string]func(path string) error{
		"file":              func(path string) error { return os.WriteFile(path, []byte("half a lea"), 0o644) },
		"symlink":           func(path string) error { return os.Symlink("/nowhere", path) },
		"FIFO":              func(path string) error { return unix.Mkfifo(path, 0o644) },
		"link to the lease": func(path string) error { return os.Link(strings.TrimSuffix(path, ".stage"), path) },
	}
	for kind, stage := range makers {
		for name, do := range map[string]act{"take-over": takeOver, "release": releaseOf("old")} {
			for _, step := range []string{"observed", "claimed"} {
				t.Run(name+"/removes a stranded "+kind+"/"+step, func(t *testing.T) {
					r := newRig(t)
					r.plant(expired().Encode())
					p := r.player("alice")
					p.meanwhile(step, func() {
						if err := stage(r.at(".stage")); err != nil {
							t.Error(err)
						}
					})
					out, err := do(p)
					succeeded(t, out, err)
					r.tidy()
				})
			}
		}
		for name, do := range map[string]act{"take-over": takeOver, "renew": renewOf("old")} {
			t.Run(name+"/refuses a foreign "+kind, func(t *testing.T) {
				r := newRig(t)
				start := valid()
				if name == "take-over" {
					start = expired()
				}
				r.plant(start.Encode())
				p := r.player("alice")
				p.meanwhile("compared", func() {
					if err := stage(r.at(".stage")); err != nil {
						t.Error(err)
					}
				})
				_, err := do(p)
				refusal := refused(t, err, CodeChanged)
				if !strings.Contains(refusal.How, "staging file") || refusal.Written != nil {
					t.Errorf("it says %q, written %v", refusal.How, refusal.Written)
				}
				equal(t, "the lease", r.bytes(""), string(start.Encode()))
				if _, err := os.Lstat(r.at(".stage")); err != nil {
					t.Errorf("the foreign stage: %v", err)
				}
			})
		}
	}
}

// A directory is nobody's stage: it is named and stays.
func TestStageThatIsADirectoryIsNamed(t *testing.T) {
	r := newRig(t)
	if err := os.Mkdir(r.at(".stage"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := acquire(r.player("alice"))
	equal(t, "the code", errCode(err), "not-regular")
	r.names("")
	if _, err := os.Lstat(r.at(".journal")); err == nil {
		t.Error("the journal has grown")
	}
}
