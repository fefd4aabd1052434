package gpud

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/soft/model"
)

// sensors are what a card says about itself; zero where it says nothing.
type sensors struct {
	celsius     uint32
	milliwatts  uint32
	lost        bool   // it does not answer any more
	uncorrected uint64 // ECC errors of memory since the driver was loaded
	throttled   bool   // because it is hot
	readings    []abi.Reading
}

// sensors are those of a card that configuration makes; those of others are read later.
func (c cardInfo) sensors() sensors {
	s := injected(c.Fault)
	m, err := model.Find(c.Model)
	if c.Driver != wire.DriverSoft || err != nil {
		return s
	}
	clock, reasons := uint64(m.Clock), uint64(0)
	if s.throttled {
		clock, reasons = clock/model.ThrottledBy, softwareThermalSlowdown
	}
	s.readings = []abi.Reading{
		{Key: abi.ReadingClockGraphics, Value: clock}, {Key: abi.ReadingClockSM, Value: clock},
		{Key: abi.ReadingClockMemory, Value: uint64(m.MemoryClock)}, {Key: abi.ReadingClockReasons, Value: reasons},
		{Key: abi.ReadingPerformanceState, Value: 0}, // it has one
	}
	if m.ECC || s.uncorrected > 0 {
		s.readings = append(s.readings, abi.Reading{Key: abi.ReadingUncorrectedErrors, Value: s.uncorrected})
	}
	return s
}

// softwareThermalSlowdown is nvmlClocksEventReasonSwThermalSlowdown.
const softwareThermalSlowdown = 0x20

// failed is why the card does not work; empty when it does.
func (s sensors) failed() string {
	switch {
	case s.lost:
		return "the GPU is not responding: it has fallen off the bus"
	case s.uncorrected > 0:
		return fmt.Sprintf("%d uncorrectable ECC memory errors", s.uncorrected)
	}
	return ""
}

// hot is the temperature of a card that is throttled, degrees C.
const hot = 95

// injected are the sensors of a soft GPU with a fault. One that hangs or is slow
// does not know it, as a card.
func injected(f model.Fault) (s sensors) {
	switch f {
	case model.ECC:
		s.uncorrected = 1
	case model.Lost:
		s.lost = true
	case model.Throttled:
		s.throttled, s.celsius = true, hot
	}
	return s
}
