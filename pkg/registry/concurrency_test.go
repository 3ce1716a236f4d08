package registry

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"holdfast/internal/testkit"
	"holdfast/pkg/procid"
)

// partAcquire acquires one root, for the process that it is given as owner: HOME ROOT PORT OWNER. It prints the code of a refusal.
func partAcquire(args []string) error {
	h, err := Open(args[0], Options{Tool: "part"})
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	owner, err := procid.Of(pid)
	if err != nil {
		return err
	}
	_, err = h.Acquire(context.Background(), Acquire{Root: args[1], Requested: "http://127.0.0.1:" + args[2], Owner: owner})
	fmt.Print(code(err))
	return nil
}

// partList lists until a file is there: HOME FILE. Anything that is not a whole registry with whole roots is an error, except
// below a retained lock, where a root may be half done.
func partList(args []string) error {
	for n := 0; ; n++ {
		h, err := Open(args[0], Options{})
		if err != nil {
			return err
		}
		err = h.List(func(in Inspection, _ Reservation) error {
			if in.Err != nil && !in.Fenced {
				return in.Err
			}
			return nil
		})
		if isUncertain(err) {
			if fenced, _ := h.fenced(); fenced {
				err = nil // killed between the registry's two first files
			}
		}
		h.Close()
		if err != nil {
			return fmt.Errorf("list %d: %w", n, err)
		}
		if _, err := os.Stat(args[1]); err == nil {
			return nil
		}
	}
}

func (w *world) part(root string, port int) *exec.Cmd {
	return testkit.Command("acquire", w.path, filepath.Join(w.dir, root), strconv.Itoa(port), strconv.Itoa(os.Getpid()))
}

// TestFortyAcquiresOfDistinctRootsAllSucceed, each in a process of its own, at once, in a state home that is not there yet.
func TestFortyAcquiresOfDistinctRootsAllSucceed(t *testing.T) {
	w := newWorld(t)
	const n = 40
	var running sync.WaitGroup
	for i := range n {
		w.root(strconv.Itoa(i))
		running.Go(func() {
			if out := testkit.Play(t, w.part(strconv.Itoa(i), 5000+i)); out != "" {
				t.Errorf("%d: %s", i, out)
			}
		})
	}
	running.Wait()
	reg, err := w.open(testOptions()).Registry()
	if err != nil || len(reg.Rows) != n || reg.Fenced {
		t.Fatalf("%d rows, fenced %v, %v", len(reg.Rows), reg.Fenced, err)
	}
	w.tidy(n)
}

// TestFiftyAcquiresOfOneRootHaveOneWinner; the others are told of the conflict and initialise nothing.
func TestFiftyAcquiresOfOneRootHaveOneWinner(t *testing.T) {
	w := newWorld(t)
	w.root("root")
	var mu sync.Mutex
	codes := map[string]int{}
	var running sync.WaitGroup
	for i := range 50 {
		running.Go(func() {
			out := testkit.Play(t, w.part("root", 5000+i))
			mu.Lock()
			defer mu.Unlock()
			codes[out]++
		})
	}
	running.Wait()
	if codes[""] != 1 || codes[CodeConflict] != 49 {
		t.Errorf("%v", codes)
	}
	w.tidy(1)
	receipts, err := os.ReadDir(filepath.Join(w.path, receiptsDir))
	if err != nil || len(receipts) != 1 {
		t.Errorf("%d receipts, %v", len(receipts), err)
	}
}

// tidy checks that nothing but n whole services is there.
func (w *world) tidy(n int) {
	w.t.Helper()
	h := w.open(testOptions())
	listed := 0
	err := h.List(func(in Inspection, row Reservation) error {
		listed++
		if in.Err != nil || in.State != State(Idle) || in.Verdict.Word != procid.Live {
			w.t.Errorf("%s: %s, %v, %v", row.Root, in.State, in.Verdict, in.Err)
		}
		return nil
	})
	if err != nil || listed != n {
		w.t.Errorf("%d services, not %d: %v", listed, n, err)
	}
	for dir, want := range map[string]int{registryDir: 2, rootsDir: n, stageDir: 0} {
		entries, err := os.ReadDir(filepath.Join(w.path, dir))
		if err != nil || len(entries) != want {
			w.t.Errorf("%s has %v, %v", dir, entries, err)
		}
	}
}

// TestKilledAcquiresLoseNothing is case B50: 40 acquires, some of which are killed, while others list all the time. Nobody ever
// sees a part of a file; what was acquired stays; a kill inside the lock leaves it, and then the rest is refused.
func TestKilledAcquiresLoseNothing(t *testing.T) {
	w := newWorld(t)
	done := filepath.Join(w.dir, "done")
	var listing sync.WaitGroup
	for range 4 {
		listing.Go(func() { testkit.Play(t, testkit.Command("list", w.path, done)) })
	}
	var mu sync.Mutex
	won, refused := map[string]bool{}, 0
	var running sync.WaitGroup
	for i := range 40 {
		name := strconv.Itoa(i)
		w.root(name)
		cmd := w.part(name, 5000+i)
		running.Go(func() {
			var out bytes.Buffer
			cmd.Stdout = &out
			if err := cmd.Start(); err != nil {
				t.Error(err)
				return
			}
			doomed := i%8 == 7
			if doomed {
				time.AfterFunc(time.Duration(rand.IntN(40))*time.Millisecond, func() { _ = cmd.Process.Kill() })
			}
			err := cmd.Wait()
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil && doomed:
			case err != nil:
				t.Errorf("%d: %v %s", i, err, &out)
			case out.Len() == 0:
				won[filepath.Join(w.dir, name)] = true
			case out.String() == CodeUnavailable:
				refused++
			default:
				t.Errorf("%d: %s", i, &out)
			}
		})
	}
	running.Wait()
	w.write(done, nil)
	listing.Wait()

	h := w.open(testOptions())
	reg, err := h.Registry()
	if err != nil && !reg.Fenced {
		t.Fatal(err)
	}
	if refused > 0 && !reg.Fenced {
		t.Errorf("%d were refused, and the lock is not retained", refused)
	}
	for root := range won {
		if reg.row(root) == nil {
			t.Errorf("%s was acquired and is lost", root)
		}
		if in := h.Inspect(root); in.Err != nil || in.State != State(Idle) {
			t.Errorf("%s: %s, %v", root, in.State, in.Err)
		}
	}
	if _, err := os.Stat(filepath.Join(w.path, brokenDir)); err == nil {
		t.Error("something was moved to broken/")
	}
	t.Logf("%d acquired, %d refused, fenced %v", len(won), refused, reg.Fenced)
}
