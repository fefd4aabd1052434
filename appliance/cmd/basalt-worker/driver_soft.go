package main

import (
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/soft/compile"
	"github.com/basalt-gpu/basalt/gpu/soft/device"
	"github.com/basalt-gpu/basalt/gpu/soft/exec"
	"github.com/basalt-gpu/basalt/gpu/soft/model"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/codecache"
)

var engines = map[model.Engine]exec.Engine{
	"": exec.Automatic, model.Automatic: exec.Automatic, model.Interpreted: exec.Interpreted, model.Compiled: exec.Compiled,
}

func init() {
	drivers[wire.DriverSoft] = func(d wire.Device, _ *codecache.Cache) (worker.Driver, error) {
		m, err := model.Find(d.Model)
		if err != nil {
			return nil, err
		}
		check, err := model.ParseChecks(d.Check)
		if err != nil {
			return nil, err
		}
		engine := model.Engine(d.Engine)
		if err := engine.Check(); err != nil {
			return nil, err
		}
		return device.New(device.Options{
			Model: m, Name: d.Name, VRAM: d.VRAMBytes, SMs: d.Multiprocessors, UUID: d.UUID,
			Capability: compile.Capability(d.Capability), Fault: model.Fault(d.Fault), Check: check, Engine: engines[engine],
		})
	}
}
