package main

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/transport"
)

// refusalsPath is the call by which a node reports which sign-ins with an identity provider it
// has refused. Releases from before it do not answer it.
const refusalsPath = "/api/refused-sign-ins"

// refusalsLimit limits the wait for the answers of all nodes, for which a person waits.
const refusalsLimit = 3 * time.Second

// serveRefusals serves what this node has refused to the other nodes.
func (cl *cluster) serveRefusals(of func(provider string) []api.RefusedSignIn) {
	cl.server.Handle("POST "+refusalsPath, transport.JSON(func(_ context.Context, _ api.NodeID, provider string) ([]api.RefusedSignIn, error) {
		return of(provider), nil
	}))
}

// refusals returns which sign-ins with a provider the other nodes have refused, and whether all
// of them have answered.
func (n *node) refusals(ctx context.Context, provider string) (all []api.RefusedSignIn, complete bool) {
	members, err := n.everyNode(ctx)
	if err != nil {
		return nil, false
	}
	return gather(ctx, members, string(n.cluster.self.Node), func(ctx context.Context, id string) (out []api.RefusedSignIn, err error) {
		return out, n.cluster.client.Call(ctx, api.NodeID(id), http.MethodPost, refusalsPath, provider, &out)
	})
}

// gather asks all nodes but this one at the same time, and returns their answers, and whether
// all of them have answered.
func gather[T any](ctx context.Context, nodes []string, self string, ask func(context.Context, string) ([]T, error)) (all []T, complete bool) {
	ctx, cancel := context.WithTimeout(ctx, refusalsLimit)
	defer cancel()
	var wg sync.WaitGroup
	var mu sync.Mutex // guards all and complete
	complete = true
	for _, id := range nodes {
		if id == self {
			continue
		}
		wg.Go(func() {
			some, err := ask(ctx, id)
			mu.Lock()
			defer mu.Unlock()
			all, complete = append(all, some...), complete && err == nil
		})
	}
	wg.Wait()
	return all, complete
}
