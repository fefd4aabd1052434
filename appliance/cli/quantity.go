package cli

import (
	"strconv"

	"github.com/basalt-gpu/basalt/api"
)

// step is a unit for display and its size in the meter's own unit.
type step struct {
	unit string
	size float64
}

// The units of each meter, the largest first.
var (
	vcpuSteps    = []step{{"vCPU h", 3600}, {"vCPU min", 60}, {"vCPU s", 1}}
	byteSteps    = []step{{"GiB h", 3600 << 30}, {"GiB min", 60 << 30}, {"GiB s", 1 << 30}, {"MiB s", 1 << 20}, {"KiB s", 1 << 10}, {"B s", 1}}
	addressSteps = []step{{"address h", 3600}, {"address min", 60}, {"address s", 1}}
	gpuSteps     = []step{{"GPU h", 3600e9}, {"GPU s", 1e9}, {"GPU ms", 1e6}, {"GPU µs", 1e3}, {"GPU ns", 1}}
	shareSteps   = []step{{"GPU h", 360_000}, {"GPU min", 6000}, {"GPU s", 100}}
	copySteps    = []step{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}
)

// formatQuantity formats a meter's quantity with three digits, in the largest unit of which
// there is at least one. JSON and YAML have the exact value.
func formatQuantity(m api.Meter, n api.Quantity) string {
	switch m {
	case api.MeterVCPU:
		return inLargestUnit(n, vcpuSteps)
	case api.MeterMemory, api.MeterVolume, api.MeterSnapshot, api.MeterVRAM:
		return inLargestUnit(n, byteSteps)
	case api.MeterAddress:
		return inLargestUnit(n, addressSteps)
	case api.MeterGPU, api.MeterGPUPremium, api.MeterGPUBasic:
		return inLargestUnit(n, gpuSteps)
	case api.MeterGPUShare:
		return inLargestUnit(n, shareSteps)
	case api.MeterEgress, api.MeterCopy:
		return inLargestUnit(n, copySteps)
	}
	return n.String()
}

func inLargestUnit(n api.Quantity, steps []step) string {
	for _, s := range steps {
		if f := n.Float() / s.size; f >= 1 {
			return threeDigits(f, s.size == 1) + " " + s.unit
		}
	}
	return n.String() + " " + steps[len(steps)-1].unit
}

// threeDigits formats f ≥ 1 with three digits, or with more if its integer part is longer.
func threeDigits(f float64, whole bool) string {
	switch {
	case whole || f >= 99.95:
		return strconv.FormatFloat(f, 'f', 0, 64)
	case f >= 9.995:
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	return strconv.FormatFloat(f, 'f', 2, 64)
}
