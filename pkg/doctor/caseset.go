package doctor

import (
	"bytes"
	"hash/maphash"
)

// caseLimit bounds the names of one directory that are compared without their case.
const caseLimit = 1 << 20

var caseSeed = maphash.MakeSeed()

// caseSet are the names of one directory, as hashes. Only once there is a name with a case are they compared at all.
type caseSet struct {
	lower  []uint64            // names that are lower-case as they are, until there is one that is not
	folded map[uint64]struct{} // all names, in lower case
}

// add adds a name, and reports whether an earlier one differs from it only in case.
func (c *caseSet) add(name []byte, upper bool) (collides bool) {
	if len(c.lower)+len(c.folded) >= caseLimit {
		return false
	}
	if upper {
		name = bytes.ToLower(name)
	}
	key := maphash.Bytes(caseSeed, name)
	if c.folded == nil && !upper {
		c.lower = append(c.lower, key)
		return false
	}
	if c.folded == nil {
		c.folded = make(map[uint64]struct{}, len(c.lower))
		for _, k := range c.lower {
			c.folded[k] = struct{}{}
		}
		c.lower = nil
	}
	if _, there := c.folded[key]; there {
		return true
	}
	c.folded[key] = struct{}{}
	return false
}
