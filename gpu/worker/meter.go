package worker

import "sync/atomic"

// meter sums the usage of the session. Work is added once, when it is complete.
type meter struct {
	gpuNanos, launches, toDevice, fromDevice atomic.Uint64
}

func (m *meter) totals() Totals {
	return Totals{
		GPUNanos: m.gpuNanos.Load(), Launches: m.launches.Load(),
		BytesToDevice: m.toDevice.Load(), BytesFromDevice: m.fromDevice.Load(),
	}
}
