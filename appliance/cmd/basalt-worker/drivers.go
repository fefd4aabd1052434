package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/codecache"
)

// drivers are the functions that open devices, by driver; each is registered in a file of its
// own. The cache is that of compiled code, or nil.
var drivers = map[string]func(wire.Device, *codecache.Cache) (worker.Driver, error){}

func openDriver(d wire.Device, cache *codecache.Cache) (worker.Driver, error) {
	open, ok := drivers[d.Driver]
	if !ok {
		return nil, fmt.Errorf("unknown driver %q: want one of %v", d.Driver, slices.Sorted(maps.Keys(drivers)))
	}
	return open(d, cache)
}
