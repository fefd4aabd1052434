package main

import (
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/null"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

func init() {
	drivers[wire.DriverNull] = func(d wire.Device) (worker.Driver, error) {
		return null.New(null.Options{Name: d.Name, VRAM: d.VRAMBytes, SMs: d.Multiprocessors, UUID: d.UUID})
	}
}
