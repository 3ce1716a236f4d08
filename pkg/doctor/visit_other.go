//go:build !linux

package doctor

// visit is not made for this system: a scan needs statx and getdents64.
type visit struct{ hazards []Hazard }

func newVisit(*scanner, *thread) *visit { return &visit{} }

func (v *visit) directory(j job) []job {
	v.hazards = append(v.hazards, Hazard{"unreadable", j.path, "a scan needs Linux"})
	return nil
}

func openRoot(path string) (*scanRoot, *Hazard) { return &scanRoot{path: path}, nil }
