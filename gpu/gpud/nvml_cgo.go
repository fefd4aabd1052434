//go:build cgo

package gpud

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/sched"
)

// nvidia is the NVML library, which is opened at run time.
type nvidia struct{ lib nvml.Interface }

// openNVIDIA opens NVML. The error is errNoDriver when the library is not installed or the
// driver's module is not loaded.
func openNVIDIA() (driver, error) {
	lib := nvml.New()
	switch ret := lib.Init(); ret {
	case nvml.SUCCESS:
		return &nvidia{lib}, nil
	case nvml.ERROR_LIBRARY_NOT_FOUND, nvml.ERROR_DRIVER_NOT_LOADED:
		return nil, fmt.Errorf("%w: NVML: %s", errNoDriver, lib.ErrorString(ret))
	default:
		return nil, fmt.Errorf("NVML: %s", lib.ErrorString(ret))
	}
}

func (n *nvidia) close() {
	_ = n.lib.Shutdown() // a failure cannot be handled
}

// cards returns the cards. Their ID is their UUID, which stays the same when they
// move to another slot. A card that does not respond is left out, with an error.
func (n *nvidia) cards() (cards []cardInfo, errs []error) {
	count, ret := n.lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return nil, []error{fmt.Errorf("NVML: get number of GPUs: %s", n.lib.ErrorString(ret))}
	}
	for i := range count {
		c, err := n.card(i)
		if err != nil {
			errs = append(errs, fmt.Errorf("GPU %d: %w", i, err))
			continue
		}
		cards = append(cards, c)
	}
	return cards, errs
}

func (n *nvidia) card(i int) (c cardInfo, err error) {
	d, ret := n.lib.DeviceGetHandleByIndex(i)
	if ret != nvml.SUCCESS {
		return c, fmt.Errorf("NVML: %s", n.lib.ErrorString(ret))
	}
	id, ret := d.GetUUID()
	if ret != nvml.SUCCESS {
		return c, fmt.Errorf("NVML: get UUID: %s", n.lib.ErrorString(ret))
	}
	name, ret := d.GetName()
	if ret != nvml.SUCCESS {
		return c, fmt.Errorf("NVML: get name: %s", n.lib.ErrorString(ret))
	}
	memory, ret := d.GetMemoryInfo()
	if ret != nvml.SUCCESS {
		return c, fmt.Errorf("NVML: get memory: %s", n.lib.ErrorString(ret))
	}
	c = cardInfo{ID: sched.GPUID(id), Name: name, Driver: wire.DriverCUDA, VRAM: memory.Total - min(memory.Total, driverReserve)}
	c.SMs = multiprocessors(d)
	if at, ret := d.GetPciInfo(); ret == nvml.SUCCESS {
		c.Address = fmt.Sprintf("%04x:%02x:%02x.0", at.Domain, at.Bus, at.Device)
	}
	return c, c.UUID.UnmarshalText([]byte(id))
}

// settings returns an error if the settings of a card prevent several workers
// from using it.
func (n *nvidia) settings(i int) error {
	d, ret := n.lib.DeviceGetHandleByIndex(i)
	if ret != nvml.SUCCESS {
		return fmt.Errorf("GPU %d: NVML: %s", i, n.lib.ErrorString(ret))
	}
	if mode, ret := d.GetComputeMode(); ret == nvml.SUCCESS && mode != nvml.COMPUTEMODE_DEFAULT {
		return fmt.Errorf("GPU %d has compute mode %d, want DEFAULT: nvidia-smi -i %d -c DEFAULT", i, mode, i)
	}
	if on, _, ret := d.GetMigMode(); ret == nvml.SUCCESS && on == nvml.DEVICE_MIG_ENABLE {
		return fmt.Errorf("GPU %d has MIG mode enabled, want disabled: nvidia-smi -i %d -mig 0", i, i)
	}
	return nil
}

// multiprocessors returns the number of multiprocessors of a card, or 0 when NVML does
// not report it. NVML counts them only for partitions of cards (MIG), and the cores of
// whole cards.
func multiprocessors(d nvml.Device) int {
	if a, ret := d.GetAttributes(); ret == nvml.SUCCESS {
		return int(a.MultiprocessorCount)
	}
	cores, ret := d.GetNumGpuCores()
	if ret != nvml.SUCCESS {
		return 0
	}
	major, minor, ret := d.GetCudaComputeCapability()
	if ret != nvml.SUCCESS {
		return 0
	}
	return cores / coresEach(major, minor)
}

// coresEach returns how many FP32 cores a multiprocessor has (CUDA C++ programming
// guide, "Compute Capabilities": arithmetic instructions).
func coresEach(major, minor int) int {
	switch {
	case major == 6 && minor == 0, major == 7, major == 8 && minor == 0:
		return 64
	}
	return 128
}

// driverReserve is the VRAM in bytes that is left to the driver and the workers'
// contexts: a single context uses some hundreds of MiB.
const driverReserve = 1 << 30

// sensors reads the sensors of a card; values that the card does not report stay
// zero.
func (n *nvidia) sensors(id sched.GPUID) (s sensors) {
	d, ret := n.lib.DeviceGetHandleByUUID(string(id))
	if s.lost = ret == nvml.ERROR_GPU_IS_LOST; ret != nvml.SUCCESS {
		return s
	}
	t, ret := d.GetTemperature(nvml.TEMPERATURE_GPU)
	if s.lost = ret == nvml.ERROR_GPU_IS_LOST; ret == nvml.SUCCESS {
		s.celsius = t
	}
	if p, ret := d.GetPowerUsage(); ret == nvml.SUCCESS {
		s.milliwatts = p
	}
	if e, ret := d.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC); ret == nvml.SUCCESS {
		s.uncorrected = e
	}
	if r, ret := d.GetCurrentClocksThrottleReasons(); ret == nvml.SUCCESS {
		s.throttled = r&(nvml.ClocksThrottleReasonSwThermalSlowdown|nvml.ClocksThrottleReasonHwThermalSlowdown) != 0
	}
	s.memory = memoryUtilization(d)
	s.readings = readings(d)
	return s
}

// memoryUtilization returns the utilization of a card's memory, or nil if it is not known:
// the rates have no value for that, but the list of domains has (domain 1 is the memory).
func memoryUtilization(d nvml.Device) *uint32 {
	const memory = 1
	rates, ret := d.GetUtilizationRates()
	if ret != nvml.SUCCESS {
		return nil
	}
	if domains, ret := d.GetDynamicPstatesInfo(); ret == nvml.SUCCESS && domains.Utilization[memory].BIsPresent == 0 {
		return nil
	}
	return &rates.Memory
}

// readings returns further values that a card reports, for its guests.
func readings(d nvml.Device) (all []abi.Reading) {
	add := func(key uint32, value uint64, ret nvml.Return) {
		if ret == nvml.SUCCESS {
			all = append(all, abi.Reading{Key: key, Value: value})
		}
	}
	for _, c := range []struct {
		now, highest uint32
		of           nvml.ClockType
	}{
		{abi.ReadingClockGraphics, abi.ReadingMaxClockGraphics, nvml.CLOCK_GRAPHICS}, {abi.ReadingClockSM, abi.ReadingMaxClockSM, nvml.CLOCK_SM},
		{abi.ReadingClockMemory, abi.ReadingMaxClockMemory, nvml.CLOCK_MEM}, {abi.ReadingClockVideo, abi.ReadingMaxClockVideo, nvml.CLOCK_VIDEO},
	} {
		mhz, ret := d.GetClockInfo(c.of)
		add(c.now, uint64(mhz), ret)
		mhz, ret = d.GetMaxClockInfo(c.of)
		add(c.highest, uint64(mhz), ret)
	}
	limit, ret := d.GetEnforcedPowerLimit()
	add(abi.ReadingPowerLimit, uint64(limit), ret)
	fan, ret := d.GetFanSpeed()
	add(abi.ReadingFanSpeed, uint64(fan), ret)
	state, ret := d.GetPerformanceState()
	if state != nvml.PSTATE_UNKNOWN {
		add(abi.ReadingPerformanceState, uint64(state), ret)
	}
	reasons, ret := d.GetCurrentClocksThrottleReasons()
	add(abi.ReadingClockReasons, reasons, ret)
	errors, ret := d.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC)
	add(abi.ReadingUncorrectedErrors, errors, ret)
	hot, ret := d.GetTemperatureThreshold(nvml.TEMPERATURE_THRESHOLD_SLOWDOWN)
	add(abi.ReadingSlowdownCelsius, uint64(hot), ret)
	hot, ret = d.GetTemperatureThreshold(nvml.TEMPERATURE_THRESHOLD_SHUTDOWN)
	add(abi.ReadingShutdownCelsius, uint64(hot), ret)
	energy, ret := d.GetTotalEnergyConsumption()
	add(abi.ReadingEnergy, energy, ret)
	for _, link := range []struct {
		key  uint32
		read func() (int, nvml.Return)
	}{
		{abi.ReadingLinkGeneration, d.GetCurrPcieLinkGeneration}, {abi.ReadingLinkWidth, d.GetCurrPcieLinkWidth},
		{abi.ReadingMaxLinkGeneration, d.GetMaxPcieLinkGeneration}, {abi.ReadingMaxLinkWidth, d.GetMaxPcieLinkWidth},
	} {
		n, ret := link.read()
		add(link.key, uint64(n), ret)
	}
	return all
}
