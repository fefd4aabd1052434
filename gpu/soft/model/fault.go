package model

import (
	"fmt"
	"slices"
	"strings"
)

// Fault is a defect of a device, for tests and demonstrations of its consequences;
// empty means none.
type Fault string

// The faults.
const (
	ECC       Fault = "ecc"       // kernels fail with an uncorrectable memory error
	Lost      Fault = "lost"      // the GPU has fallen off the bus: no context can be created
	Hang      Fault = "hang"      // kernels do not end
	Slow      Fault = "slow"      // kernels and copies take SlowBy times as long
	Throttled Fault = "throttled" // the GPU is hot: kernels take ThrottledBy times as long
)

// The factors by which work takes longer.
const (
	SlowBy      = 10
	ThrottledBy = 3
)

// Faults returns the names of all faults.
func Faults() []string {
	return []string{string(ECC), string(Lost), string(Hang), string(Slow), string(Throttled)}
}

// Check returns an error unless the fault exists or is empty.
func (f Fault) Check() error {
	if f != "" && !slices.Contains(Faults(), string(f)) {
		return fmt.Errorf("unknown fault %q: want one of %s", f, strings.Join(Faults(), ", "))
	}
	return nil
}
