package registry

import (
	"runtime"
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
	err := h.settle(func() (err error) {
		reg, err = h.Registry()
		return err
	})
	if err != nil || len(reg.Rows) == 0 {
		return err
	}
	roots, err := h.sub(rootsDir)
	if err != nil {
		return err
	}
	if roots != nil {
		defer roots.Close()
	}
	local := h.isLocal()
	look := func(i int) listed { return h.listed(reg, reg.Rows[i], roots, local) }
	return inOrder(len(reg.Rows), look, func(l listed) error {
		if l.gone {
			return nil
		}
		return each(l.Inspection, l.row)
	})
}

func (h *Home) listed(reg *Registry, row Reservation, roots *regfile.Dir, local bool) listed {
	in := Inspection{Root: row.Root, Fenced: reg.Fenced}
	state, err := h.readRootIn(roots, row.Root)
	if err == nil {
		err = h.inspect(&in, &row, state)
	}
	if isUncertain(err) {
		in = h.Inspect(row.Root) // what was listed may have moved on
		switch r := in.Registration; {
		case in.Err != nil:
		case r == nil || r.Phase == Stopped:
			return listed{gone: true}
		default:
			row = r.Reservation
		}
	} else if err != nil {
		in.State, in.Err = StateUncertain, err
	}
	if in.Registration == nil {
		in.Verdict = h.opts.Judge(row.Owner(), local)
	}
	return listed{Inspection: in, row: row}
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
