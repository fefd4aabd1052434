//go:build !cgo

package gpud

import "fmt"

// openNVIDIA needs cgo to open NVML; without it a node has soft GPUs only.
func openNVIDIA() (driver, error) {
	return nil, fmt.Errorf("%w: this basalt-gpud was built without cgo and cannot open NVML", errNoDriver)
}
