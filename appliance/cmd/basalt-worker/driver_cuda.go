package main

import (
	"github.com/basalt-gpu/basalt/gpu/cuda"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

func init() {
	drivers[wire.DriverCUDA] = func(d wire.Device) (worker.Driver, error) {
		return cuda.Open(cuda.Options{UUID: d.UUID})
	}
}
