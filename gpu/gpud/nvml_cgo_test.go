//go:build cgo

package gpud

import (
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
)

// The numbers of whole cards, and of a part of one.
func TestMultiprocessors(t *testing.T) {
	for name, x := range map[string]struct{ cores, major, minor, part, want int }{
		"H100": {16896, 9, 0, 0, 132}, "A100": {6912, 8, 0, 0, 108}, "L4": {7424, 8, 9, 0, 58}, "T4": {2560, 7, 5, 0, 40},
		"a part of an A100": {0, 8, 0, 14, 14}, "one that does not tell": {0, 9, 0, 0, 0},
	} {
		d := &mock.Device{
			GetAttributesFunc: func() (nvml.DeviceAttributes, nvml.Return) {
				if x.part == 0 {
					return nvml.DeviceAttributes{}, nvml.ERROR_NOT_SUPPORTED
				}
				return nvml.DeviceAttributes{MultiprocessorCount: uint32(x.part)}, nvml.SUCCESS
			},
			GetNumGpuCoresFunc: func() (int, nvml.Return) {
				if x.cores == 0 {
					return 0, nvml.ERROR_NOT_SUPPORTED
				}
				return x.cores, nvml.SUCCESS
			},
			GetCudaComputeCapabilityFunc: func() (int, int, nvml.Return) { return x.major, x.minor, nvml.SUCCESS },
		}
		if got := multiprocessors(d); got != x.want {
			t.Errorf("%s: %d multiprocessors, want %d", name, got, x.want)
		}
	}
}
