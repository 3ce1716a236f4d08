package doctor

import (
	"hash/maphash"
	"strings"
)

// caseLimit bounds the names of one directory that are compared without their case.
const caseLimit = 1 << 18

// caseSet are the names of one directory. Only once there is a name with a case are the names compared at all.
type caseSet struct {
	seed   maphash.Seed
	lower  []string            // names that are lower-case as they are, until there is one that is not
	folded map[uint64]struct{} // hashes of the folded names
}

// add adds a name, and reports one of which it is a copy but for case.
func (c *caseSet) add(name string, upper bool) (other string, collides bool) {
	if c.folded == nil && !upper {
		if len(c.lower) < caseLimit {
			c.lower = append(c.lower, name)
		}
		return "", false
	}
	if c.folded == nil {
		c.seed = maphash.MakeSeed()
		c.folded = make(map[uint64]struct{}, len(c.lower))
		for _, n := range c.lower {
			c.folded[maphash.String(c.seed, n)] = struct{}{}
		}
		c.lower = nil
	}
	if len(c.folded) >= caseLimit {
		return "", false
	}
	folded := name
	if upper {
		folded = strings.ToLower(name)
	}
	key := maphash.String(c.seed, folded)
	if _, there := c.folded[key]; there {
		return folded, true
	}
	c.folded[key] = struct{}{}
	return "", false
}
