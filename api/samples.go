package api

import (
	"math"
	"time"
)

// Names of series. The API's description explains them (SampleSeries); an instance, a
// node and a GPU have the series that apply to them.
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

// SampleQuery selects the samples of a chart.
type SampleQuery struct {
	From time.Time     // zero: 15 minutes ago
	Step time.Duration // zero: the finest that is available for the period
}

// NewSampleSeries returns a series of values, in which NaN is a gap.
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

// Last returns the last value of the series that is not a gap; false if there is none.
func (s SampleSeries) Last() (float64, bool) {
	for i := len(s.Values) - 1; i >= 0; i-- {
		if v := s.Values[i]; v != nil {
			return *v, true
		}
	}
	return 0, false
}
