package client

import (
	"context"
	"io"
	"net/http"

	"github.com/basalt-gpu/basalt/api"
)

// Cluster answers who is in it.
func (a *API) Cluster(ctx context.Context) (api.Cluster, error) {
	return get[api.Cluster](ctx, a, nil, "cluster")
}

// RemoveNode takes a node out of the cluster.
func (a *API) RemoveNode(ctx context.Context, id string, force bool) (api.Node, error) {
	return call[api.Node](ctx, a, request{method: http.MethodDelete, path: []string{"nodes", id}, params: api.DeleteNodeParams{Force: force}})
}

// Backup writes the control plane's state to w. A backup that breaks off in
// the middle is an error, and its checksum does not hold.
func (a *API) Backup(ctx context.Context, w io.Writer) error {
	return a.save(ctx, w, request{method: http.MethodGet, path: []string{"cluster", "backup"}})
}

// Setup is what the node at the other end of a unix socket says of itself. The
// calls below are for root of its machine, and for that socket only.
func (a *API) Setup(ctx context.Context) (api.Setup, error) {
	return get[api.Setup](ctx, a, nil, "setup")
}

// SetupInit makes a new cluster of the node.
func (a *API) SetupInit(ctx context.Context, cluster string) (api.Setup, error) {
	return post[api.Setup](ctx, a, api.SetupInit{Cluster: cluster}, "setup", "init")
}

// SetupJoin makes the node a member of a cluster.
func (a *API) SetupJoin(ctx context.Context, token string) (api.Setup, error) {
	return post[api.Setup](ctx, a, api.SetupJoin{Token: token}, "setup", "join")
}

// SetupRecover makes the node alone the cluster.
func (a *API) SetupRecover(ctx context.Context, confirm string) (api.Setup, error) {
	return post[api.Setup](ctx, a, api.SetupRecover{Confirm: confirm}, "setup", "recover")
}

// SetupRebuild makes the node's store anew of the other members'.
func (a *API) SetupRebuild(ctx context.Context) (api.Setup, error) {
	return post[api.Setup](ctx, a, struct{}{}, "setup", "rebuild")
}

// SetupLeave takes the node out of its cluster.
func (a *API) SetupLeave(ctx context.Context) (api.Setup, error) {
	return post[api.Setup](ctx, a, struct{}{}, "setup", "leave")
}

// SetupRestore makes a new cluster of the node with a backup's content.
func (a *API) SetupRestore(ctx context.Context, backup io.Reader) (api.Setup, error) {
	return call[api.Setup](ctx, a, request{method: http.MethodPost, path: []string{"setup", "restore"}, content: backup, size: -1})
}
