package model

import (
	"fmt"
	"strings"
)

// Checks are mistakes of kernels that a device looks for, beyond those that end a
// kernel on every device. What is found ends the kernel.
type Checks struct {
	Memory bool // an access outside of all allocations, or misaligned, is told in full
	Race   bool // two threads of a block use a byte of shared memory, one writes, and nothing orders them
	Init   bool // a read of shared memory that nobody has written
}

// ParseChecks reads "memory,race,init", or some of them; "" is none.
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
