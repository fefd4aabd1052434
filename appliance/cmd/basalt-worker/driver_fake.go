//go:build basalt_fake

package main

import (
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/codecache"
	"github.com/basalt-gpu/basalt/gpu/worker/fakedriver"
)

// The fake driver is for testing a worker without a device: go build -tags basalt_fake.
func init() {
	drivers["fake"] = func(d wire.Device, _ *codecache.Cache) (worker.Driver, error) {
		return fakedriver.New(fakedriver.Options{VRAM: d.VRAMBytes}), nil
	}
}
