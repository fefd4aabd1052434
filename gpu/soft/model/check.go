package model

import (
	"fmt"
	"strings"
)

// Checks selects the errors of kernels that a device detects, besides those that end a
// kernel on every device. An error that is detected ends the kernel.
type Checks struct {
	Memory bool // an access outside of all allocations, or misaligned, is described in detail
	Race   bool // two threads of a block access a byte of shared memory, one writes, and the accesses are not ordered
	Init   bool // a read of shared memory that has not been written
}

// ParseChecks parses "memory,race,init", or some of them; "" is none.
func ParseChecks(s string) (c Checks, err error) {
	if s == "" {
		return c, nil
	}
	for name := range strings.SplitSeq(s, ",") {
		switch name {
		case "memory":
			c.Memory = true
		case "race":
			c.Race = true
		case "init":
			c.Init = true
		default:
			return Checks{}, fmt.Errorf("unknown check %q: want some of memory, race, init", name)
		}
	}
	return c, nil
}
