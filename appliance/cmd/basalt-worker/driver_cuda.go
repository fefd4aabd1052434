package main

import (
	"github.com/basalt-gpu/basalt/gpu/cuda"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/codecache"
	"github.com/basalt-gpu/basalt/gpu/worker/stdio"
)

func init() {
	drivers[wire.DriverCUDA] = func(d wire.Device, cache *codecache.Cache) (worker.Driver, error) {
		o := cuda.Options{UUID: d.UUID, Output: func() (cuda.Output, error) { return stdio.Start() }}
		if cache != nil {
			o.Cache = cache
		}
		return cuda.Open(o)
	}
}
