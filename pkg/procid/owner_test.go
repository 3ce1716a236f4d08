package procid

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Each rule about who can be an owner stands under its own words.
func TestOwnerDecisions(t *testing.T) {
	plain := func(change func(*candidate)) candidate {
		c := candidate{Leader: 77, Key: keyA}
		change(&c)
		return c
	}
	why := errors.New("why")
	const implausible, unreadable = CodeOwnerPIDImplausible, CodeOwnerStartKeyUnreadable
	for _, c := range []struct {
		rule string
		pid  int
		seen candidate
		want string
	}{
		{"a process", 77, plain(func(*candidate) {}), ""},
		{"pid 1 of a namespace of its own", 1, plain(func(c *candidate) { c.Leader = 1 }), ""},
		{"pid below 1", 0, candidate{}, implausible},
		{"pid below 1", -77, candidate{}, implausible},
		{"pid of more than 32 bits", 1<<32 + 77, plain(func(*candidate) {}), implausible},
		{"pid below 1, whatever else is known", -1, candidate{NoKeys: why}, implausible},
		{"no such process", 77, candidate{Absent: true}, implausible},
		{"no such process, which takes no /proc to know", 77, candidate{Absent: true, NoKeys: why}, implausible},
		{"no such process, which ended while it was looked at", 77, candidate{Absent: true, Unreadable: why}, implausible},
		{"pid 1 of the initial namespace", 1, plain(func(c *candidate) { c.First, c.Leader = true, 1 }), implausible},
		{"pid 1 of the initial namespace, hidden", 1, candidate{First: true, Unreadable: why}, implausible},
		{"no key can be made here", 77, candidate{NoKeys: why}, unreadable},
		{"hidden", 77, candidate{Unreadable: why}, unreadable},
		{"a thread", 77, plain(func(c *candidate) { c.Leader = 76 }), implausible},
		{"a zombie", 77, plain(func(c *candidate) { c.Zombie = true }), implausible},
	} {
		t.Run(c.rule, func(t *testing.T) {
			e := decideOwner(c.pid, c.seen)
			if c.want == "" {
				if e != nil {
					t.Errorf("refused: %v", e)
				}
				return
			}
			refusedAs(t, orNil(e), c.want, c.pid)
			if c.want == unreadable && !errors.Is(e, why) {
				t.Errorf("%v does not wrap its cause", e)
			}
		})
	}
}

// orNil keeps a nil *OwnerError from becoming an error that is not nil.
func orNil(e *OwnerError) error {
	if e == nil {
		return nil
	}
	return e
}

// refusedAs checks a refusal: its code, and that its words are a clause that names the pid.
func refusedAs(t *testing.T, err error, code string, pid int) {
	t.Helper()
	var e *OwnerError
	if !errors.As(err, &e) {
		t.Fatalf("%v is no refusal", err)
	}
	if e.ErrorCode() != code || e.PID != pid || !strings.Contains(e.Error(), strconv.Itoa(pid)) {
		t.Errorf("%q %+v, want %s of %d", e.Error(), *e, code, pid)
	}
	aClause(t, e.Error())
}

func TestImpossibleOwnersAreRefusedEverywhere(t *testing.T) {
	for _, pid := range []int{0, -1, -syscall.Getpid(), 1 << 30, 1<<32 + syscall.Getpid(), 1 << 32, math.MaxInt} {
		id, err := Of(pid)
		refusedAs(t, err, CodeOwnerPIDImplausible, pid)
		if id.StartKey != "" {
			t.Errorf("%+v", id)
		}
	}
}
