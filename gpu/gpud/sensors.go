package gpud

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/soft/model"
)

// sensors are the values that a card reports; zero where it reports none.
type sensors struct {
	celsius     uint32
	milliwatts  uint32
	lost        bool    // it no longer responds
	uncorrected uint64  // uncorrected ECC errors of its memory since the driver was loaded
	throttled   bool    // because of its temperature
	memory      *uint32 // percent of the last second in which its memory was read or written; nil: not known
	readings    []abi.Reading
}

// sensors returns the sensors of a card that was created by configuration; those of
// real cards are read later.
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
		{Key: abi.ReadingPerformanceState, Value: 0}, // it reports one
	}
	if g := uint64(m.LinkGeneration); g > 0 {
		s.readings = append(s.readings,
			abi.Reading{Key: abi.ReadingLinkGeneration, Value: g}, abi.Reading{Key: abi.ReadingLinkWidth, Value: model.LinkWidth},
			abi.Reading{Key: abi.ReadingMaxLinkGeneration, Value: g}, abi.Reading{Key: abi.ReadingMaxLinkWidth, Value: model.LinkWidth})
	}
	if m.ECC || s.uncorrected > 0 {
		s.readings = append(s.readings, abi.Reading{Key: abi.ReadingUncorrectedErrors, Value: s.uncorrected})
	}
	return s
}

// softwareThermalSlowdown is nvmlClocksEventReasonSwThermalSlowdown.
const softwareThermalSlowdown = 0x20

// failed returns why the card does not work; empty when it works.
func (s sensors) failed() string {
	switch {
	case s.lost:
		return "the GPU is not responding: it has fallen off the bus"
	case s.uncorrected > 0:
		return fmt.Sprintf("%d uncorrectable ECC memory errors", s.uncorrected)
	}
	return ""
}

// hot is the temperature of a card that is throttled, in degrees Celsius.
const hot = 95

// injected returns the sensors of a soft GPU with a fault. Like a real card, one
// that hangs or is slow does not report that.
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
