package main

import (
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/null"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/codecache"
)

func init() {
	drivers[wire.DriverNull] = func(d wire.Device, _ *codecache.Cache) (worker.Driver, error) {
		return null.New(null.Options{Name: d.Name, VRAM: d.VRAMBytes, SMs: d.Multiprocessors, UUID: d.UUID})
	}
}
