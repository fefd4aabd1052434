package servertest

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Forecast is the capacity of a fake cluster: one model that grows, and one whose trend
// is not known.
type Forecast struct{}

// Capacity implements server.Capacity.
func (Forecast) Capacity(context.Context) (api.Capacity, error) {
	return api.Capacity{AsOf: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), Gpus: []api.GPUCapacity{
		{Pool: "default", Model: "NVIDIA H100", Count: 16, VramBytes: 16 * 80 << 30, AllocatedPercent: 62.5, History: 28, Trend: api.CapacityGrowing, FullInDays: 20, EarliestDays: 15, LatestDays: 31},
		{Pool: "default", Model: "NVIDIA L4", Count: 2, VramBytes: 2 * 24 << 30, AllocatedPercent: 10, History: 3, Trend: api.CapacityUnknown},
	}}, nil
}
