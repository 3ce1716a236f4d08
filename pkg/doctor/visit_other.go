//go:build !linux

package doctor

// visit is not made for this system: a scan needs statx and getdents64.
type visit struct {
	*scanner
	walker
}

func newVisit(s *scanner) *visit { return &visit{scanner: s} }

func (v *visit) do(j job) { v.found <- []Hazard{{"unreadable", j.path, "a scan needs Linux"}} }

func (v *visit) takeOver() []Hazard { return nil }

func openRoot(path string) (*scanRoot, *Hazard) { return &scanRoot{path: path}, nil }
