package client

import (
	"context"
	"io"
	"net/http"

	"github.com/basalt-gpu/basalt/api"
)

// Cluster returns the members of the cluster.
func (a *API) Cluster(ctx context.Context) (api.Cluster, error) {
	return get[api.Cluster](ctx, a, nil, "cluster")
}

// ReplaceCA begins to replace the cluster's CA; with renew, the certificates are renewed once
// all nodes trust the new one.
func (a *API) ReplaceCA(ctx context.Context, renew bool) (api.Cluster, error) {
	return call[api.Cluster](ctx, a, request{method: http.MethodPost, path: []string{"cluster", "ca-replacement"}, params: api.ReplaceCAParams{Renew: renew}})
}

// CancelCAReplacement keeps the cluster's CA.
func (a *API) CancelCAReplacement(ctx context.Context) (api.Cluster, error) {
	return call[api.Cluster](ctx, a, request{method: http.MethodDelete, path: []string{"cluster", "ca-replacement"}})
}

// RemoveNode removes a node from the cluster.
func (a *API) RemoveNode(ctx context.Context, id string, force bool) (api.Node, error) {
	return call[api.Node](ctx, a, request{method: http.MethodDelete, path: []string{"nodes", id}, params: api.DeleteNodeParams{Force: force}})
}

// Backup writes a backup of the control plane's state to w. If it is interrupted, it
// returns an error, and the checksum in what was written is wrong.
func (a *API) Backup(ctx context.Context, w io.Writer) error {
	return a.save(ctx, w, request{method: http.MethodGet, path: []string{"cluster", "backup"}})
}

// Setup returns what the node at the other end of a Unix socket reports about itself.
// The calls below work only over that socket and for its machine's root user.
func (a *API) Setup(ctx context.Context) (api.Setup, error) {
	return get[api.Setup](ctx, a, nil, "setup")
}

// SetupInit creates a new cluster on the node.
func (a *API) SetupInit(ctx context.Context, cluster string) (api.Setup, error) {
	return post[api.Setup](ctx, a, api.SetupInit{Cluster: cluster}, "setup", "init")
}

// SetupJoin makes the node a member of a cluster.
func (a *API) SetupJoin(ctx context.Context, token string) (api.Setup, error) {
	return post[api.Setup](ctx, a, api.SetupJoin{Token: token}, "setup", "join")
}

// SetupRecover reduces the cluster to this node.
func (a *API) SetupRecover(ctx context.Context, confirm string) (api.Setup, error) {
	return post[api.Setup](ctx, a, api.SetupRecover{Confirm: confirm}, "setup", "recover")
}

// SetupRebuild copies the node's store from the other members.
func (a *API) SetupRebuild(ctx context.Context) (api.Setup, error) {
	return post[api.Setup](ctx, a, struct{}{}, "setup", "rebuild")
}

// SetupLeave removes the node from its cluster.
func (a *API) SetupLeave(ctx context.Context) (api.Setup, error) {
	return post[api.Setup](ctx, a, struct{}{}, "setup", "leave")
}

// SetupRestore creates a new cluster on the node from a backup.
func (a *API) SetupRestore(ctx context.Context, backup io.Reader) (api.Setup, error) {
	return call[api.Setup](ctx, a, request{method: http.MethodPost, path: []string{"setup", "restore"}, content: backup, size: -1})
}
