package leasectl

import (
	"fmt"
	"strconv"

	"holdfast/pkg/lease"
)

// fenceValue is a flag for a fence token; -1 stands for none.
type fenceValue struct{ into *int64 }

// Set parses a whole number from 0 to lease.MaxFence.
func (v *fenceValue) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > lease.MaxFence {
		return fmt.Errorf("it must be a whole number from 0 to %d", int64(lease.MaxFence))
	}
	*v.into = n
	return nil
}

func (v *fenceValue) String() string {
	if v.into == nil || *v.into < 0 {
		return ""
	}
	return strconv.FormatInt(*v.into, 10)
}
