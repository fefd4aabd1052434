//go:build !cgo

package gpud

import "fmt"

// openNVIDIA fails: opening NVML needs cgo. A node without it has soft GPUs only.
func openNVIDIA() (driver, error) {
	return nil, fmt.Errorf("%w: this basalt-gpud was built without cgo and cannot open NVML", errNoDriver)
}
