package server

import (
	"context"
	"net/http"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// Whoami answers the caller's key or session.
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
	return &out, err
}

// GetVersion of the server.
func (h *handlers) GetVersion(context.Context, in[none, none]) (*api.Version, error) {
	return &api.Version{Version: h.opts.Version, API: "v1"}, nil
}

// GetHealth answers when the server does.
func (h *handlers) GetHealth(context.Context, in[none, none]) (*api.Health, error) {
	return &api.Health{Status: "ok", Revision: h.opts.Store.Revision()}, nil
}

func noCluster() error {
	return api.Errorf(api.CodeState, "this node is not part of a cluster").
		WithHint("nodes of a cluster are started with --peer-listen, see docs/install.md")
}

// GetCluster answers who is in it.
func (h *handlers) GetCluster(ctx context.Context, _ in[none, none]) (*api.Cluster, error) {
	if h.opts.Cluster == nil {
		return nil, noCluster()
	}
	c, err := h.opts.Cluster.Cluster(ctx)
	if c.Members == nil {
		c.Members = []api.Member{}
	}
	return &c, err
}

// BackupCluster streams the state.
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

// write sends it. What fails in the middle breaks the
// connection, so that half a backup is not taken for a whole one; its own
// checksum says so too.
func (b backupResponse) write(w http.ResponseWriter) error {
	first := &firstWrite{w: w, mime: "application/octet-stream"}
	err := b.cluster.Backup(b.ctx, first)
	if err != nil && first.done {
		panic(http.ErrAbortHandler)
	}
	return err
}

// firstWrite sets the header when the first bytes come, so that an error
// before them is an ordinary answer.
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
