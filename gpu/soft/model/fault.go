package model

import (
	"fmt"
	"slices"
	"strings"
)

// Fault is what is wrong with a device, for tests and demonstrations of what
// comes of it; empty: nothing.
type Fault string

// The faults.
const (
	ECC       Fault = "ecc"       // kernels fail: a word of memory cannot be corrected
	Lost      Fault = "lost"      // the card has fallen off the bus: nobody gets a context
	Hang      Fault = "hang"      // kernels do not end
	Slow      Fault = "slow"      // kernels and copies take SlowBy times as long
	Throttled Fault = "throttled" // the card is hot: kernels take ThrottledBy times as long
)

// How many times as long work takes.
const (
	SlowBy      = 10
	ThrottledBy = 3
)

// Faults returns the names of all.
func Faults() []string {
	return []string{string(ECC), string(Lost), string(Hang), string(Slow), string(Throttled)}
}

// Check fails for a fault that there is not.
func (f Fault) Check() error {
	if f != "" && !slices.Contains(Faults(), string(f)) {
		return fmt.Errorf("unknown fault %q: want one of %s", f, strings.Join(Faults(), ", "))
	}
	return nil
}
