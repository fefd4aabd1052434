package worker

import "github.com/basalt-gpu/basalt/gpu/abi"

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
