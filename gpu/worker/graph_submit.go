package worker

import (
	"sync/atomic"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// graphLaunch is one launch, from its submission until all of it is done.
type graphLaunch struct {
	s       *Session
	g       *graphObject
	lanes   [maxLanes]Stream
	used    int // number of lanes with submitted work; they are the first ones
	regions []*region
	memory  int64 // bytes, approximately; counted in Session.held

	// pending is the number of the driver's operations that are not done, plus 1
	// until the part in the launch's stream has ended. An operation of another
	// lane may be reported after that end.
	pending atomic.Int64
	done    func(error) // of the command's ticket; nil: already called
	result  error       // of the part in the launch's stream; written before pending decreases
}

// submit passes a whole graph to the driver: after the work in the stream o and
// after the graph's own last launch. The lanes are joined even when a node fails.
func (l *graphLaunch) submit(o streamObject) error {
	g, d := l.g, l.g.ctx.driver
	l.lanes[0], l.used = o.stream, 1
	copy(l.lanes[1:], g.ctx.lanes)
	if g.launched {
		if err := d.StreamWaitEvent(o.stream, g.done); err != nil {
			return err
		}
	}
	if g.plan.lanes > 1 {
		if err := d.EventRecord(g.mark, o.stream); err != nil {
			return err
		}
	}
	err := l.submitNodes()
	joins := g.plan.joins
	if err != nil {
		joins = joins[:0:0]
		for lane := 1; lane < l.used; lane++ {
			joins = append(joins, lane)
		}
	}
	for _, lane := range joins {
		err = firstError(err, d.EventRecord(g.mark, l.lanes[lane]))
		err = firstError(err, d.StreamWaitEvent(o.stream, g.mark))
	}
	g.launched = true
	return firstError(err, d.EventRecord(g.done, o.stream))
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func (l *graphLaunch) submitNodes() error {
	g, d := l.g, l.g.ctx.driver
	for i, st := range g.plan.steps {
		stream := l.lanes[st.lane]
		if st.first {
			if err := d.StreamWaitEvent(stream, g.mark); err != nil {
				return err
			}
		}
		l.used = max(l.used, st.lane+1)
		for _, e := range st.waits {
			if err := d.StreamWaitEvent(stream, g.events[e]); err != nil {
				return err
			}
		}
		if g.nodes[i].Flags&abi.GraphNodeDisabled == 0 {
			if err := l.node(stream, g.nodes[i]); err != nil {
				return err
			}
		}
		if st.event >= 0 {
			if err := d.EventRecord(g.events[st.event], stream); err != nil {
				return err
			}
		}
	}
	return nil
}

// node passes one node's work to the driver.
func (l *graphLaunch) node(stream Stream, n abi.GraphNode) error {
	d, h := l.g.ctx.driver, &l.s.handles
	switch b := n.Body.(type) {
	case abi.GraphKernel:
		f, err := lookup[*functionObject](h, b.Function)
		if err != nil {
			return err
		}
		launch := Launch{
			Grid: b.Grid, Block: b.Block, Shared: b.Shared, Cooperative: b.Flags&abi.LaunchCooperative != 0,
			Cluster: abi.LaunchCluster(b.Flags), Params: b.Params, Attributes: b.Attributes,
		}
		return l.submitOperation(nil, 0, func(done func(error)) error { return d.Launch(stream, f.function, launch, done) })
	case abi.GraphCopy:
		return l.copy(stream, mergeRows(b))
	case abi.GraphMemset:
		for row := range b.Rows {
			err := l.submitOperation(nil, 0, func(done func(error)) error {
				return d.Memset(stream, b.Dst+row*b.Pitch, b.Value, b.Width, b.Columns, done)
			})
			if err != nil {
				return err
			}
		}
	case abi.GraphEvent:
		e, err := h.event(uint64(b))
		if err != nil {
			return err
		}
		if n.Kind == abi.GraphNodeEventRecord {
			return d.EventRecord(e.event, stream)
		}
		return d.StreamWaitEvent(stream, e.event)
	}
	return nil
}

// copy submits the rows of a copy, whose sums costOf has checked.
func (l *graphLaunch) copy(stream Stream, b abi.GraphCopy) error {
	if b.Width == 0 || b.Height == 0 || b.Depth == 0 {
		return nil
	}
	host, err := l.host(b)
	if err != nil {
		return err
	}
	d, m := l.g.ctx.driver, &l.s.meter
	for z := range b.Depth {
		for y := range b.Height {
			to, from := z*b.DstSlice+y*b.DstPitch, z*b.SrcSlice+y*b.SrcPitch
			switch b.What {
			case abi.GraphCopyHtoD:
				err = l.submitOperation(&m.toDevice, b.Width, func(done func(error)) error {
					return d.CopyHtoD(stream, b.Dst+to, host[from:from+b.Width], done)
				})
			case abi.GraphCopyDtoH:
				err = l.submitOperation(&m.fromDevice, b.Width, func(done func(error)) error {
					return d.CopyDtoH(stream, host[to:to+b.Width], b.Src+from, done)
				})
			default:
				err = l.submitOperation(nil, 0, func(done func(error)) error {
					return d.CopyDtoD(stream, b.Dst+to, b.Src+from, b.Width, done)
				})
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// host returns the host's side of a copy and keeps its region until the launch is
// done.
func (l *graphLaunch) host(b abi.GraphCopy) ([]byte, error) {
	off, pitch, slice := b.Src, b.SrcPitch, b.SrcSlice
	switch b.What {
	case abi.GraphCopyDtoD:
		return nil, nil
	case abi.GraphCopyDtoH:
		off, pitch, slice = b.Dst, b.DstPitch, b.DstSlice
	}
	n, err := extent(off, b.Width, b.Height, b.Depth, pitch, slice)
	if err != nil {
		return nil, err
	}
	bytes, r, err := l.s.buffer(b.Region, off, n)
	if err != nil {
		return nil, err
	}
	r.acquire()
	l.regions = append(l.regions, r)
	return bytes, nil
}

// submitOperation passes one operation to the driver and adds n bytes to total when it is
// done. A later failure is the context's asynchronous error.
func (l *graphLaunch) submitOperation(total *atomic.Uint64, n uint64, op func(done func(error)) error) error {
	var fired atomic.Bool
	l.pending.Add(1)
	err := op(func(err error) {
		if !fired.CompareAndSwap(false, true) {
			return
		}
		if err != nil {
			_ = l.s.asyncError(l.g.ctx, err)
		} else if total != nil {
			total.Add(n)
		}
		l.settle()
	})
	if err != nil && fired.CompareAndSwap(false, true) {
		l.settle()
	}
	return err
}

// notify completes the command when all of the launch is done.
func (l *graphLaunch) notify(o streamObject, done func(error)) error {
	l.done = done
	err := l.g.ctx.driver.StreamNotify(o.stream, func(err error) {
		l.result = err
		l.settle()
	})
	if err != nil { // the caller completes the command
		l.done = nil
		l.settle()
	}
	return err
}

// settle subtracts one operation; any goroutine may call it. After the last one
// the launch releases everything.
func (l *graphLaunch) settle() {
	if l.pending.Add(-1) != 0 {
		return
	}
	for _, r := range l.regions {
		r.release()
	}
	if l.s.releaseHeld(l.memory) {
		l.s.signal()
	}
	if l.done != nil {
		l.done(l.result)
	}
}
