package worker

import (
	"bytes"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// graphRecord copies a graph's record out of shared memory.
func (s *Session) graphRecord(region uint32, off, n uint64) ([]byte, error) {
	if n > abi.MaxGraphBytes {
		return nil, abi.ErrInvalidValue
	}
	shared, _, err := s.buffer(region, off, n)
	if err != nil {
		return nil, err
	}
	return bytes.Clone(shared), nil // the guest can no longer change it
}

func (s *Session) graphInstantiate(c *command) error {
	a := abi.DecodeGraphInstantiate(c.argBytes)
	ctx, err := s.context(c, a.Ctx)
	if err != nil {
		return err
	}
	if err := s.handles.free(a.Exec, 1); err != nil {
		return err
	}
	record, err := s.graphRecord(a.NodesRegion, a.NodesOff, a.NodesLen)
	if err != nil {
		return err
	}
	nodes, err := abi.DecodeGraphRecord(record)
	if err != nil {
		s.log.Debug("refused graph", "error", err)
		return abi.ErrInvalidValue
	}
	g := &graphObject{ctx: ctx, nodes: nodes}
	if g.cost, err = s.measureGraph(ctx, nodes); err != nil {
		return err
	}
	if err := s.holdGraph(ctx, 0, g.cost.memory); err != nil {
		return err
	}
	g.plan = planGraph(nodes)
	if err := g.prepare(); err != nil {
		_ = g.free()
		_ = s.holdGraph(ctx, g.cost.memory, 0)
		return err
	}
	s.handles.add(a.Exec, ctx, g)
	return nil
}

// prepare creates the driver's objects that the plan needs.
func (g *graphObject) prepare() (err error) {
	d := g.ctx.driver
	for len(g.ctx.lanes) < g.plan.lanes-1 {
		lane, err := d.StreamCreate(StreamNonBlocking, 0)
		if err != nil {
			return err
		}
		g.ctx.lanes = append(g.ctx.lanes, lane)
	}
	if g.mark, err = d.EventCreate(EventDisableTiming); err != nil {
		return err
	}
	if g.done, err = d.EventCreate(EventDisableTiming); err != nil {
		return err
	}
	for range g.plan.events {
		e, err := d.EventCreate(EventDisableTiming)
		if err != nil {
			return err
		}
		g.events = append(g.events, e)
	}
	return nil
}

// free destroys the driver's objects, except for the lanes. Work that waits for an event
// continues to wait.
func (g *graphObject) free() (err error) {
	for _, e := range append(g.events, g.mark, g.done) {
		if e != nil {
			err = firstError(err, g.ctx.driver.EventDestroy(e))
		}
	}
	return err
}

func (s *Session) graphUpdate(c *command) error {
	a := abi.DecodeGraphUpdate(c.argBytes)
	g, err := s.graph(c, a.Exec)
	if err != nil {
		return err
	}
	record, err := s.graphRecord(a.NodesRegion, a.NodesOff, a.NodesLen)
	if err != nil {
		return err
	}
	changes, err := abi.DecodeGraphChanges(record)
	if err != nil {
		s.log.Debug("refused graph update", "error", err)
		return abi.ErrInvalidValue
	}
	nodes, cost, err := s.changeGraph(g, changes)
	if err != nil {
		return err
	}
	if err := s.holdGraph(g.ctx, g.cost.memory, cost.memory); err != nil {
		return err
	}
	later := *g // launches in progress count the operations of the version that they were made from
	later.nodes, later.cost = nodes, cost
	s.handles.objects[a.Exec] = &later
	return nil
}

// graph returns the command's executable graph, or an error if the command must not be
// executed.
func (s *Session) graph(c *command, handle uint64) (*graphObject, error) {
	g, err := lookup[*graphObject](&s.handles, handle)
	if err != nil {
		return nil, err
	}
	return g, c.use(g.ctx)
}

func (s *Session) graphLaunch(c *command) error {
	a := abi.DecodeGraphLaunch(c.argBytes)
	o, err := s.stream(c, a.Stream)
	if err != nil {
		return err
	}
	g, err := lookup[*graphObject](&s.handles, a.Exec)
	if err != nil {
		return err
	}
	if g.ctx != o.ctx {
		return abi.ErrInvalidHandle
	}
	l := &graphLaunch{s: s, g: g, memory: g.cost.ops * commandMemory}
	l.pending.Store(1)
	s.inflight.Add(1)
	s.held.Add(l.memory)
	failed := l.submit(o)
	waiter := *c
	if failed != nil {
		waiter.slot = abi.NoSlot // the issuer completes the command; the ticket is for the submitted operations
	}
	started := s.start(&waiter, &ticket{}, func(done func(error)) error { return l.notify(o, done) })
	if failed != nil {
		return failed
	}
	return started
}

func (s *Session) graphDestroy(c *command) error {
	h := abi.DecodeGraphDestroy(c.argBytes).Exec
	g, err := lookup[*graphObject](&s.handles, h)
	if err != nil {
		return err
	}
	c.ctx = g.ctx
	s.handles.remove(h, g.ctx)
	_ = s.holdGraph(g.ctx, g.cost.memory, 0)
	return g.free()
}
