package device

import (
	"testing"

	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/drivertest"
)

func TestDriver(t *testing.T) {
	drivertest.Run(t, func(t *testing.T) worker.Driver {
		d, err := New(Options{VRAM: 64 << 20, SMs: 2})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}, drivertest.Options{})
}
