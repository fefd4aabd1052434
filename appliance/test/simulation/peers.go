package simulation

import (
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
