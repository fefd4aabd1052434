package api

import (
	"math"
	"time"
)

// Names of series. What they are of, the description of the API says
// (SampleSeries); an instance, a node and a card have those that they can have.
const (
	SampleCPU         = "cpu"
	SampleMemory      = "memory"
	SampleMemoryLimit = "memory-limit"
	SampleDiskRead    = "disk-read"
	SampleDiskWrite   = "disk-write"
	SampleDiskReads   = "disk-reads"
	SampleDiskWrites  = "disk-writes"
	SampleReceived    = "network-received"
	SampleSent        = "network-sent"
	SampleGPU         = "gpu"
	SampleVRAM        = "vram"
	SampleVRAMLimit   = "vram-limit"
)

// SampleQuery asks for a chart.
type SampleQuery struct {
	From time.Time     // zero: a quarter of an hour ago
	Step time.Duration // zero: the finest that reaches so far
}

// NewSampleSeries of values of which NaN is a gap.
func NewSampleSeries(name string, values []float64) SampleSeries {
	s := SampleSeries{Name: name, Unit: sampleUnit(name), Values: make([]*float64, len(values))}
	for i, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			s.Values[i] = &v
		}
	}
	return s
}

func sampleUnit(name string) SampleSeriesUnit {
	switch name {
	case SampleCPU, SampleGPU:
		return UnitPercent
	case SampleDiskRead, SampleDiskWrite, SampleReceived, SampleSent:
		return UnitBytesPerSecond
	case SampleDiskReads, SampleDiskWrites:
		return UnitRequestsPerSecond
	}
	return UnitBytes
}

// Last value of a series that there is; false: none.
func (s SampleSeries) Last() (float64, bool) {
	for i := len(s.Values) - 1; i >= 0; i-- {
		if v := s.Values[i]; v != nil {
			return *v, true
		}
	}
	return 0, false
}
