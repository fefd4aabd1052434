package worker

import "sync/atomic"

// meter sums what the session has used. Every number is added once, when the
// work is complete.
type meter struct {
	gpuNanos, launches, toDevice, fromDevice atomic.Uint64
}

func (m *meter) totals() Totals {
	return Totals{
		GPUNanos: m.gpuNanos.Load(), Launches: m.launches.Load(),
		BytesToDevice: m.toDevice.Load(), BytesFromDevice: m.fromDevice.Load(),
	}
}
