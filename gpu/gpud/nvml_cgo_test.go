//go:build cgo

package gpud

import (
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// TestMultiprocessors checks the numbers of whole cards and of a partition of
// one.
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
			t.Errorf("%s: multiprocessors = %d, want %d", name, got, x.want)
		}
	}
}

// TestReadings checks that a card's guests get exactly the values that it
// reports.
func TestReadings(t *testing.T) {
	d := &mock.Device{
		GetClockInfoFunc: func(c nvml.ClockType) (uint32, nvml.Return) {
			if c == nvml.CLOCK_VIDEO {
				return 0, nvml.ERROR_NOT_SUPPORTED
			}
			return 100 + uint32(c), nvml.SUCCESS
		},
		GetMaxClockInfoFunc:         func(c nvml.ClockType) (uint32, nvml.Return) { return 200 + uint32(c), nvml.SUCCESS },
		GetEnforcedPowerLimitFunc:   func() (uint32, nvml.Return) { return 70000, nvml.SUCCESS },
		GetFanSpeedFunc:             func() (uint32, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED },
		GetPerformanceStateFunc:     func() (nvml.Pstates, nvml.Return) { return nvml.PSTATE_8, nvml.SUCCESS },
		GetTemperatureThresholdFunc: func(nvml.TemperatureThresholds) (uint32, nvml.Return) { return 96, nvml.SUCCESS },
		GetCurrentClocksThrottleReasonsFunc: func() (uint64, nvml.Return) {
			return 1, nvml.SUCCESS
		},
		GetTotalEccErrorsFunc: func(nvml.MemoryErrorType, nvml.EccCounterType) (uint64, nvml.Return) {
			return 0, nvml.ERROR_NOT_SUPPORTED
		},
		GetTotalEnergyConsumptionFunc: func() (uint64, nvml.Return) { return 1 << 40, nvml.SUCCESS },
		GetCurrPcieLinkGenerationFunc: func() (int, nvml.Return) { return 1, nvml.SUCCESS },
		GetCurrPcieLinkWidthFunc:      func() (int, nvml.Return) { return 8, nvml.SUCCESS },
		GetMaxPcieLinkGenerationFunc:  func() (int, nvml.Return) { return 5, nvml.SUCCESS },
		GetMaxPcieLinkWidthFunc:       func() (int, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED },
	}
	want := []abi.Reading{
		{Key: abi.ReadingClockGraphics, Value: 100}, {Key: abi.ReadingMaxClockGraphics, Value: 200},
		{Key: abi.ReadingClockSM, Value: 101}, {Key: abi.ReadingMaxClockSM, Value: 201},
		{Key: abi.ReadingClockMemory, Value: 102}, {Key: abi.ReadingMaxClockMemory, Value: 202},
		{Key: abi.ReadingMaxClockVideo, Value: 203},
		{Key: abi.ReadingPowerLimit, Value: 70000}, {Key: abi.ReadingPerformanceState, Value: 8}, {Key: abi.ReadingClockReasons, Value: 1},
		{Key: abi.ReadingSlowdownCelsius, Value: 96}, {Key: abi.ReadingShutdownCelsius, Value: 96},
		{Key: abi.ReadingEnergy, Value: 1 << 40},
		{Key: abi.ReadingLinkGeneration, Value: 1}, {Key: abi.ReadingLinkWidth, Value: 8}, {Key: abi.ReadingMaxLinkGeneration, Value: 5},
	}
	if diff := cmp.Diff(want, readings(d)); diff != "" {
		t.Errorf("readings mismatch (-want +got):\n%s", diff)
	}
}
