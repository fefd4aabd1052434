package main

import (
	"context"
	"io"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/network"
	"github.com/basalt-gpu/basalt/appliance/node/agent"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/sdn/ovn/deploy"
)

// runtime implements server.Runtime with this node's agent.
type runtime struct {
	*agent.Agent
	network *network.Sweeper // nil: no network
	leads   func() bool      // reports whether this node is the leader
}

func (n *node) runtime() runtime {
	r := runtime{Agent: n.agent, leads: func() bool { return n.store.LeaderTerm() != 0 }}
	if f := n.network; f != nil && f.pretended == nil {
		r.network = &network.Sweeper{Store: n.store, Cluster: n.clusterName(), Self: f.self,
			Open: func(members []deploy.Member, bootstrap deploy.Bootstrap) network.Rows {
				return f.open(members, bootstrap)
			}}
	}
	return r
}

// Leaks returns the leaks of this node, and those of the cluster's network if the node is the
// leader.
func (r runtime) Leaks(ctx context.Context, node api.NodeID) ([]api.Leak, error) {
	all, err := r.Agent.Leaks(ctx, node)
	if err != nil || r.network == nil || !r.leads() {
		return all, err
	}
	more, err := r.network.Leaks(ctx)
	return append(all, more...), err
}

// execTimeout is the default limit of a program in a guest.
const execTimeout = 30 * time.Second

func (r runtime) Exec(ctx context.Context, id api.InstanceID, req api.ExecRequest) (api.ExecResult, error) {
	timeout := execTimeout
	if req.TimeoutSeconds > 0 {
		timeout = time.Duration(req.TimeoutSeconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	got, err := r.Agent.Exec(ctx, id, hypervisor.Exec{Argv: req.Argv, Stdin: req.Stdin})
	if err != nil {
		return api.ExecResult{}, err
	}
	code := int64(got.ExitCode)
	if got.Signal != 0 {
		code = int64(128 + got.Signal) // as in a shell
	}
	return api.ExecResult{ExitCode: code, Stdout: nonNil(got.Stdout), Stderr: nonNil(got.Stderr), Truncated: got.Truncated}, nil
}

func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

func (r runtime) PutImage(ctx context.Context, id api.ImageID, content io.Reader, _ int64) error {
	return r.Agent.PutImage(ctx, id, content)
}
