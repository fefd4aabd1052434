package server

import (
	"context"
	"fmt"
	"net/http"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// Whoami returns the identity of the caller's key or session.
func (h *handlers) Whoami(ctx context.Context, _ in[none, none]) (*api.Identity, error) {
	me := who(ctx)
	out := api.Identity{Key: me.ID, Name: me.Name, Role: me.Role,
		Organization: me.Org, Project: me.Project, ExpiresAt: me.ExpiresAt, User: me.User}
	if me.User == "" {
		return &out, nil
	}
	u, err := h.auth.Me(ctx)
	c := auth.Credentials(u)
	out.HasPassword, out.Totp, out.Passkeys, out.NeedsTotp = c.PasswordHash != "", c.TotpSecret != "", len(c.Passkeys), me.NeedsTotp
	out.Language = u.Spec.Language
	if err != nil {
		return nil, fmt.Errorf("read the user of the caller: %w", err)
	}
	return &out, nil
}

// GetVersion returns the version of the server.
func (h *handlers) GetVersion(context.Context, in[none, none]) (*api.Version, error) {
	return &api.Version{Version: h.opts.Version, API: "v1"}, nil
}

// GetHealth returns ok as soon as the server can answer.
func (h *handlers) GetHealth(context.Context, in[none, none]) (*api.Health, error) {
	return &api.Health{Status: "ok", Revision: h.opts.Store.Revision()}, nil
}

func noCluster() error {
	return api.Errorf(api.CodeState, "this node is not part of a cluster").
		WithHint("nodes of a cluster are started with --peer-listen, see docs/install.md")
}

// GetCluster returns the members of the cluster.
func (h *handlers) GetCluster(ctx context.Context, _ in[none, none]) (*api.Cluster, error) {
	if h.opts.Cluster == nil {
		return nil, noCluster()
	}
	c, err := h.opts.Cluster.Cluster(ctx)
	if c.Members == nil {
		c.Members = []api.Member{}
	}
	if err != nil {
		return nil, fmt.Errorf("read the members of the cluster: %w", err)
	}
	return &c, nil
}

// ReplaceCA begins to replace the cluster's CA, or lets a replacement continue.
func (h *handlers) ReplaceCA(ctx context.Context, r in[api.ReplaceCAParams, none]) (*api.Cluster, error) {
	if h.opts.Cluster == nil {
		return nil, noCluster()
	}
	if err := h.opts.Cluster.ReplaceCA(ctx, r.Params.Renew); err != nil {
		return nil, fmt.Errorf("replace the CA of the cluster: %w", err)
	}
	return h.GetCluster(ctx, in[none, none]{})
}

// CancelCAReplacement keeps the cluster's CA.
func (h *handlers) CancelCAReplacement(ctx context.Context, _ in[none, none]) (*api.Cluster, error) {
	if h.opts.Cluster == nil {
		return nil, noCluster()
	}
	if err := h.opts.Cluster.CancelCAReplacement(ctx); err != nil {
		return nil, fmt.Errorf("cancel the replacement of the CA of the cluster: %w", err)
	}
	return h.GetCluster(ctx, in[none, none]{})
}

// BackupCluster streams a backup of the cluster's state.
func (h *handlers) BackupCluster(ctx context.Context, _ in[none, none]) (*backupResponse, error) {
	if h.opts.Cluster == nil {
		return nil, noCluster()
	}
	return &backupResponse{ctx, h.opts.Cluster}, nil
}

type backupResponse struct {
	ctx     context.Context //nolint:containedctx // of the request, which the response is a part of
	cluster Membership
}

// write sends the backup. An error after the first bytes closes the connection, so that
// the client does not take a partial backup for a complete one; the checksum of the
// backup would also reveal it.
func (b backupResponse) write(w http.ResponseWriter) error {
	first := &firstWrite{w: w, mime: "application/octet-stream"}
	err := b.cluster.Backup(b.ctx, first)
	if err != nil && first.done {
		panic(http.ErrAbortHandler)
	}
	if err != nil {
		return fmt.Errorf("back up the cluster: %w", err)
	}
	return nil
}

// firstWrite sets the header on the first write, so that an earlier error can still be
// sent as an ordinary response.
type firstWrite struct {
	w    http.ResponseWriter
	mime string
	done bool
}

func (f *firstWrite) Write(b []byte) (int, error) {
	if !f.done {
		f.done = true
		f.w.Header().Set("Content-Type", f.mime)
		f.w.WriteHeader(http.StatusOK)
	}
	return f.w.Write(b)
}
