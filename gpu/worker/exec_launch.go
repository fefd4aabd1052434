package worker

import (
	"slices"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

func (s *Session) launch(c *command) error {
	a := abi.DecodeLaunch(c.argBytes)
	o, err := s.stream(c, a.Stream)
	if err != nil {
		return err
	}
	f, err := lookup[*functionObject](&s.handles, a.Function)
	if err != nil {
		return err
	}
	if f.ctx != o.ctx {
		return abi.ErrInvalidHandle
	}
	l := Launch{
		Grid: [3]uint32{a.GridX, a.GridY, a.GridZ}, Block: [3]uint32{a.BlockX, a.BlockY, a.BlockZ},
		Shared: a.Shared, Cooperative: a.Flags&abi.LaunchCooperative != 0, Cluster: abi.LaunchCluster(a.Flags), Params: c.inlineBytes,
	}
	for i := range 3 {
		if l.Grid[i] == 0 || l.Block[i] == 0 {
			return abi.ErrInvalidValue
		}
	}
	return s.start(c, &ticket{}, func(done func(error)) error { return o.ctx.driver.Launch(o.stream, f.function, l, done) })
}

// clusters queries a device with clusters: how many fit, or how large one can be.
func (s *Session) clusters(c *command) error {
	a := abi.DecodeClusters(c.argBytes)
	f, err := s.function(c, a.Function)
	if err != nil {
		return err
	}
	driver, ok := f.ctx.driver.(ClusterOccupancy)
	if !ok {
		return abi.ErrNotSupported
	}
	l := Launch{
		Grid: [3]uint32{a.GridX, a.GridY, a.GridZ}, Block: [3]uint32{a.BlockX, a.BlockY, a.BlockZ},
		Shared: a.Shared, Cluster: abi.LaunchCluster(a.Flags),
	}
	ask := driver.MaxActiveClusters
	switch {
	case a.Potential == 1:
		l.Cluster = [3]uint32{} // it is what is asked for
		ask = driver.MaxClusterSize
	case a.Potential != 0 || a.Zero != 0 || slices.Contains(l.Grid[:], 0):
		return abi.ErrInvalidValue
	}
	if slices.Contains(l.Block[:], 0) {
		return abi.ErrInvalidValue
	}
	n, err := ask(f.function, l)
	c.value0 = uint64(uint32(n))
	return err
}
