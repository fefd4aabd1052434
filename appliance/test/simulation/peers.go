package simulation

import (
	"bytes"
	"context"
	"io"
	"net"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/agent"
	"github.com/basalt-gpu/basalt/sds"
)

// peers implements agent.Peers and agent.Remote: calls to other nodes.
type peers struct{ p *proc }

const callLimit = 10 * time.Second

// call runs f on the other node. A lost answer does not undo its effect.
func (ps peers) call(ctx context.Context, to api.NodeID, f func(q *proc) error) error {
	p, w := ps.p, ps.p.w
	if err := ctx.Err(); err != nil {
		return err
	}
	gone := api.Errorf(api.CodeUnavailable, "node %s does not answer", to)
	m := w.machine(to)
	if m == nil {
		return gone
	}
	path := w.net.way(p.m, m)
	if path < 0 || w.net.lost() {
		w.wait(w.between(500*time.Millisecond, 3*time.Second))
		return gone
	}
	w.wait(w.net.delay())
	q := m.proc
	if q == nil || q.stepper == nil || !w.net.open(p.m, m, path) {
		w.wait(w.between(10*time.Millisecond, 2*time.Second))
		return gone
	}
	t := w.cur
	nap, answered, result := t.nap, false, error(nil)
	w.spawn(q, "called", func(*thread) {
		err := f(q)
		if w.net.open(m, p.m, path) && !w.net.lost() {
			p.later(w.net.delay(), "reply", func() {
				if t.nap == nap {
					answered, result = true, err
					t.wake(nap)
				}
			})
		}
	})
	w.after(callLimit, "call limit", func() { t.wake(nap) })
	t.park()
	if !answered {
		return gone
	}
	return result
}

func (ps peers) PrepareMigration(ctx context.Context, to api.NodeID, r agent.PrepareRequest) (reply agent.PrepareReply, err error) {
	err = ps.call(ctx, to, func(q *proc) error {
		var err error
		reply, err = q.stepper.Agent().HandlePrepareMigration(q.ctx, ps.p.m.id, r)
		return err
	})
	return reply, err
}

func (ps peers) OpenTunnel(ctx context.Context, to api.NodeID, r agent.TunnelRequest) (net.Conn, error) {
	end := &tunnelEnd{}
	err := ps.call(ctx, to, func(q *proc) error { return q.stepper.Agent().HandleTunnel(q.ctx, ps.p.m.id, r, end) })
	if err == nil && end.to == nil {
		err = api.Errorf(api.CodeState, "the target did not accept the stream")
	}
	return end, err
}

func (ps peers) FinishMigration(ctx context.Context, to api.NodeID, r agent.FinishRequest) (reply agent.FinishReply, err error) {
	err = ps.call(ctx, to, func(q *proc) error {
		var err error
		reply, err = q.stepper.Agent().HandleFinish(q.ctx, ps.p.m.id, r)
		return err
	})
	return reply, err
}

func (ps peers) FetchImage(ctx context.Context, from api.NodeID, id api.ImageID) (content io.ReadCloser, img sds.Image, err error) {
	err = ps.call(ctx, from, func(q *proc) error {
		var err error
		content, img, err = q.stepper.Agent().ExportImage(q.ctx, id)
		return err
	})
	return content, img, err
}

func (ps peers) CopyProgress(ctx context.Context, to api.NodeID, r agent.CopyRequest) (reply agent.CopyReply, err error) {
	err = ps.call(ctx, to, func(q *proc) error {
		var err error
		reply, err = q.stepper.Agent().HandleCopyProgress(q.ctx, ps.p.m.id, r)
		return err
	})
	return reply, err
}

// volumeContent is the content of a volume on its way to another node.
type volumeContent struct {
	bytes.Buffer
	generation int64 // of the disk
	arrives    func() error
}

func (c *volumeContent) Close() error { return nil }

// FetchVolume returns the content that the volume has on the source now. It arrives later
// (pool.ImportVolume), unless one of the nodes, or the path between them, fails.
func (ps peers) FetchVolume(ctx context.Context, from api.NodeID, r agent.VolumeRequest) (io.ReadCloser, sds.Volume, error) {
	c, have := &volumeContent{}, sds.Volume{}
	var source *proc
	err := ps.call(ctx, from, func(q *proc) error {
		source = q
		return q.stepper.Agent().ExportVolume(q.ctx, ps.p.m.id, r, c, func(v sds.Volume) {
			have, c.generation = v, q.w.disks.content[v.Source.Path]
		})
	})
	if err != nil {
		return nil, have, err
	}
	c.arrives = func() error {
		for range 4 {
			ps.p.w.wait(ps.p.w.between(200*time.Millisecond, 4*time.Second))
			if source.dead || ps.p.w.net.way(ps.p.m, source.m) < 0 {
				return api.Errorf(api.CodeUnavailable, "the connection to the source is lost")
			}
		}
		return nil
	}
	return c, have, nil
}
