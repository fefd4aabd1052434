package main

import (
	"context"
	"net/http"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/membership"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// trustPath is the call by which a member reports which CAs it trusts.
const trustPath = "/certificate/trust"

const (
	advanceEvery = time.Second     // interval between the leader's attempts to begin the next phase
	trustLimit   = 3 * time.Second // limit for a member's answer
)

// trust returns what a member reports about its certificate.
func (cl *cluster) trust(ctx context.Context, id api.NodeID) (t membership.Trust, err error) {
	if id == cl.self.Node {
		return membership.TrustOf(cl.certificates), nil
	}
	quick, cancel := context.WithTimeout(ctx, trustLimit)
	defer cancel()
	return t, cl.client.Call(quick, id, http.MethodPost, trustPath, struct{}{}, &t)
}

// replaceCA continues a replacement of the cluster's CA while this node is the leader.
func (cl *cluster) replaceCA(ctx context.Context) {
	for ctx.Err() == nil {
		err := membership.Advance(ctx, cl.store, cl.trust, cl.log)
		if err != nil && ctx.Err() == nil && api.CodeOf(err) != api.CodeConflict && api.CodeOf(err) != api.CodeNotFound {
			cl.log.Warn("replace the cluster's CA failed, retrying", "error", err)
		}
		sleep(ctx, advanceEvery)
	}
}

// ReplaceCA implements server.Membership.
func (cl *cluster) ReplaceCA(ctx context.Context, renew bool) error {
	level, _, err := cl.store.Settled()
	if err != nil {
		return err
	}
	if level < state.CAReplacementLevel {
		return api.Errorf(api.CodeState, "not all nodes can replace the cluster's CA").WithHint("upgrade all nodes of the cluster first")
	}
	return membership.Replace(ctx, cl.store, renew, time.Now())
}

// CancelCAReplacement implements server.Membership.
func (cl *cluster) CancelCAReplacement(ctx context.Context) error {
	return membership.CancelReplacement(ctx, cl.store)
}
