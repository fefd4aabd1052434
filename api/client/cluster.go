package client

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"

	"github.com/basalt-gpu/basalt/api"
)

// Cluster answers who is in it.
func (a *API) Cluster(ctx context.Context) (api.Cluster, error) {
	return decode[api.Cluster](a.gen.GetCluster(ctx)) //nolint:bodyclose // decode closes it
}

// RemoveNode takes a node out of the cluster.
func (a *API) RemoveNode(ctx context.Context, id string, force bool) (api.Node, error) {
	return decode[api.Node](a.gen.DeleteNode(ctx, id, &api.DeleteNodeParams{Force: force})) //nolint:bodyclose // decode closes it
}

// Backup writes the control plane's state to w. A backup that breaks off in
// the middle is an error, and its checksum does not hold.
func (a *API) Backup(ctx context.Context, w io.Writer) error {
	resp, err := a.gen.BackupCluster(ctx)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := failure(resp); err != nil {
		return err
	}
	_, err = io.Copy(w, resp.Body)
	return err
}

// Setup is what the node at the other end of a unix socket says of itself. The
// calls below are for root of its machine, and for that socket only.
func (a *API) Setup(ctx context.Context) (api.Setup, error) {
	return decode[api.Setup](a.setup(ctx, http.MethodGet, "", nil)) //nolint:bodyclose // decode closes it
}

// SetupInit makes a new cluster of the node.
func (a *API) SetupInit(ctx context.Context, cluster string) (api.Setup, error) {
	return a.setupJSON(ctx, "/init", api.SetupInit{Cluster: cluster})
}

// SetupJoin makes the node a member of a cluster.
func (a *API) SetupJoin(ctx context.Context, token string) (api.Setup, error) {
	return a.setupJSON(ctx, "/join", api.SetupJoin{Token: token})
}

// SetupRecover makes the node alone the cluster.
func (a *API) SetupRecover(ctx context.Context, confirm string) (api.Setup, error) {
	return a.setupJSON(ctx, "/recover", api.SetupRecover{Confirm: confirm})
}

// SetupRebuild makes the node's store anew of the other members'.
func (a *API) SetupRebuild(ctx context.Context) (api.Setup, error) {
	return a.setupJSON(ctx, "/rebuild", struct{}{})
}

// SetupLeave takes the node out of its cluster.
func (a *API) SetupLeave(ctx context.Context) (api.Setup, error) {
	return a.setupJSON(ctx, "/leave", struct{}{})
}

// SetupRestore makes a new cluster of the node with a backup's content.
func (a *API) SetupRestore(ctx context.Context, backup io.Reader) (api.Setup, error) {
	return decode[api.Setup](a.setup(ctx, http.MethodPost, "/restore", io.NopCloser(backup))) //nolint:bodyclose // decode closes it
}

func (a *API) setupJSON(ctx context.Context, verb string, in any) (api.Setup, error) {
	raw, err := json.Marshal(in)
	if err != nil {
		return api.Setup{}, err
	}
	return decode[api.Setup](a.setup(ctx, http.MethodPost, verb, bytes.NewReader(raw))) //nolint:bodyclose // decode closes it
}

// setup asks once: none of these is to happen twice.
func (a *API) setup(ctx context.Context, method, verb string, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, a.base.String()+"/v1/setup"+verb, body)
	if err != nil {
		return nil, err
	}
	resp, err := a.http.Do(r)
	return resp, a.unreachable(err, r)
}
