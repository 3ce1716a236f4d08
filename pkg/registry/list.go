package registry

import (
	"runtime"
	"slices"
	"sync"

	"holdfast/pkg/regfile"
)

// listed is a row as it was found. One that was released meanwhile is gone.
type listed struct {
	Inspection
	row  Reservation
	gone bool
}

// List inspects every row, in the order in which they were acquired. The error is about the registry, for then nobody can list
// it, or each's, which ends the list. Rows are looked at by several goroutines; each is called by the caller's.
func (h *Home) List(each func(Inspection, Reservation) error) error {
	var reg *Registry
	var roots *regfile.Dir
	err := h.settle(func() (err error) {
		reg, roots, err = h.registryAndRoots()
		return err
	})
	if err != nil {
		return err
	}
	defer closeDir(roots)
	for rows := reg.Rows; len(rows) > 0; {
		some := rows[:min(len(rows), together)]
		rows = rows[len(some):]
		found := make([]listed, 0, len(some))
		_ = inOrder(len(some), func(i int) listed { return h.listed(reg, some[i], &some[i], roots) }, func(l listed) error {
			found = append(found, l)
			return nil
		})
		h.lookAgain(found)
		for _, l := range found {
			if l.gone {
				continue
			}
			if err := each(l.Inspection, l.row); err != nil {
				return err
			}
		}
	}
	return nil
}

// registryAndRoots reads the registry and opens the directory of its roots' files.
func (h *Home) registryAndRoots() (*Registry, *regfile.Dir, error) {
	reg, err := h.Registry()
	if err != nil {
		return nil, nil, err
	}
	roots, err := h.roots()
	return reg, roots, err
}

func closeDir(d *regfile.Dir) {
	if d != nil {
		d.Close()
	}
}

// together is how many rows are looked at before they are told: for those among them that are uncertain the registry, which may be
// large, is read once more.
const together = 256

// listed looks at a row; now is what the registry has for its root, nil when it has gone.
func (h *Home) listed(reg *Registry, row Reservation, now *Reservation, roots *regfile.Dir) listed {
	if now != nil {
		row = *now
	}
	l := listed{Inspection: Inspection{Root: row.Root, Fenced: reg.Fenced}, row: row}
	state, err := h.readRootIn(roots, row.Root)
	if err == nil {
		err = h.inspect(&l.Inspection, now, state)
	}
	if err != nil {
		l.State, l.Err = StateUncertain, err
	}
	if l.Registration == nil {
		l.Verdict = h.opts.Judge(row.Owner(), h.isLocal())
	}
	l.gone = now == nil && err == nil
	return l
}

// lookAgain looks once more at rows that are uncertain: what was listed may have moved on.
func (h *Home) lookAgain(found []listed) {
	unsure := func(l listed) bool { return isUncertain(l.Err) }
	if !slices.ContainsFunc(found, unsure) {
		return
	}
	_ = h.settle(func() error { // what cannot be read any more leaves them as they were found
		reg, roots, err := h.registryAndRoots()
		if err != nil {
			return err
		}
		defer closeDir(roots)
		for i, l := range found {
			if !unsure(l) {
				continue
			}
			if found[i] = h.listed(reg, l.row, reg.row(l.row.Root), roots); unsure(found[i]) {
				err = found[i].Err
			}
		}
		return err
	})
}

// inOrder gets n things, in several goroutines where there are many, and gives them to use one after the other.
func inOrder[T any](n int, get func(i int) T, use func(T) error) error {
	const few, ahead = 16, 32
	workers := min(runtime.GOMAXPROCS(0), 4)
	if n < few || workers == 1 {
		for i := range n {
			if err := use(get(i)); err != nil {
				return err
			}
		}
		return nil
	}
	done := make(chan struct{})
	var running sync.WaitGroup
	defer running.Wait()
	defer close(done)
	got := make([]chan T, workers)
	for w := range workers {
		got[w] = make(chan T, ahead)
		running.Go(func() {
			for i := w; i < n; i += workers {
				select {
				case got[w] <- get(i):
				case <-done:
					return
				}
			}
		})
	}
	for i := range n {
		if err := use(<-got[i%workers]); err != nil {
			return err
		}
	}
	return nil
}
