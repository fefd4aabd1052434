package fakedriver_test

import (
	"testing"

	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/drivertest"
	"github.com/basalt-gpu/basalt/gpu/worker/fakedriver"
)

func TestConformance(t *testing.T) {
	drivertest.Run(t, func(*testing.T) worker.Driver {
		return fakedriver.New(fakedriver.Options{VRAM: 64 << 20})
	}, drivertest.Options{Image: []byte("store delay fault"), Loops: 10_000_000})
}
