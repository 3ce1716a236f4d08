package procid

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/internal/testkit"
)

// An Observer that is older than the processes it judges says what a new one says.
func TestAnObserverKeepsNothingAboutOthers(t *testing.T) {
	o := NewObserver()
	id, child := begin(t, testkit.Command("self"))
	legacy := id
	legacy.StartKey = fmt.Sprintf("linux:%d", ParseKey(id.StartKey).Ticks)
	wordIs(t, o.Judge(id, false), Live)
	wordIs(t, o.Judge(legacy, false), Live)
	check(t, child.Process.Signal(syscall.SIGKILL))
	until(t, func() bool { return isZombie(id.PID) })
	wordIs(t, o.Judge(id, false), Dead)
	child.Kill()
	wordIs(t, o.Judge(id, false), Dead)
	wordIs(t, o.Judge(legacy, false), Dead)
	again, _ := begin(t, testkit.Command("self"))
	wordIs(t, o.Judge(again, false), Live)
}

func TestAnObserverServesManyAtOnce(t *testing.T) {
	o := NewObserver()
	living, _ := begin(t, testkit.Command("self"))
	ended, child := begin(t, testkit.Command("self"))
	child.Kill()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				if v := o.Judge(living, false); v.Word != Live {
					t.Errorf("%+v", v)
				}
				if v := o.Judge(ended, false); v.Word != Dead {
					t.Errorf("%+v", v)
				}
			}
		})
	}
	all.Wait()
}

// A host may be renamed while an Observer lives; only records whose host matters are judged by it.
func TestAnObserverSeesTheHostRenamed(t *testing.T) {
	testkit.NeedRoot(t)
	testkit.Play(t, testkit.Isolated(testkit.Command("renamed"), syscall.CLONE_NEWUTS))
}

// renamed judges itself before and after its host got another name.
func renamed([]string) error {
	var c testkit.Checks
	o := NewObserver()
	us, err := Self()
	if err != nil {
		return err
	}
	legacy := us
	legacy.StartKey = fmt.Sprintf("linux:%d", ParseKey(us.StartKey).Ticks)
	elsewhere := us
	key := ParseKey(us.StartKey)
	key.Boot = bootA
	elsewhere.StartKey = key.String()
	is := func(when string, ours, old, other Word) {
		for _, row := range []struct {
			id   Identity
			want Word
		}{{us, ours}, {legacy, old}, {elsewhere, other}} {
			v := o.Judge(row.id, false)
			c.That(v.Word == row.want, "%s: %+v: %+v, want %s", when, row.id, v, row.want)
		}
	}
	is("before", Live, Live, Uncertain)
	if err := unix.Sethostname([]byte("renamed-" + fmt.Sprint(os.Getpid()))); err != nil {
		return err
	}
	is("after", Live, OtherHost, OtherHost)
	return c.Err()
}

// BenchmarkJudge compares one verdict of an Observer with what it consists of, and with a verdict from nothing.
func BenchmarkJudge(b *testing.B) {
	id, err := Self()
	check(b, err)
	b.Run("observer", func(b *testing.B) {
		o := NewObserver()
		for b.Loop() {
			o.Judge(id, false)
		}
	})
	b.Run("kill and stat", func(b *testing.B) {
		for b.Loop() {
			_ = unix.Kill(id.PID, 0)
			_, _ = readStat("self")
		}
	})
	b.Run("from nothing", func(b *testing.B) {
		for b.Loop() {
			Judge(id, false)
		}
	})
}
