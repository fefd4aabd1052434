package membership

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/transport"
)

// Setup implements the setup calls; basaltd has one for a node without a cluster
// and one for a member.
type Setup interface {
	Setup(ctx context.Context) api.Setup
	Init(ctx context.Context, cluster string) error
	Join(ctx context.Context, token string) error
	Restore(ctx context.Context, backup io.Reader) error
	Recover(ctx context.Context, confirm string) error
	Rebuild(ctx context.Context) error
	Leave(ctx context.Context) error
}

// maxBackup is the maximum size in bytes of a backup to restore.
const maxBackup = 64 << 30

// Handler serves the setup calls, only on the node's own socket. Every user of the
// machine may read the state; only root may change it.
func Handler(s Setup) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/setup", func(w http.ResponseWriter, r *http.Request) { answer(w, s.Setup(r.Context()), nil) })
	act := func(verb string, limit int64, do func(*http.Request) error) {
		mux.HandleFunc("POST /v1/setup/"+verb, func(w http.ResponseWriter, r *http.Request) {
			if uid, ok := r.Context().Value(uidKey{}).(uint32); !ok || uid != 0 {
				answer(w, nil, api.Errorf(api.CodeForbidden, "only root on this machine may do this").WithHint("sudo basalt …"))
				return
			}
			r.Body = http.MaxBytesReader(w, r.Body, limit)
			err := do(r)
			answer(w, s.Setup(r.Context()), err)
		})
	}
	act("init", 1<<16, with(func(ctx context.Context, in api.SetupInit) error { return s.Init(ctx, in.Cluster) }))
	act("join", 1<<16, with(func(ctx context.Context, in api.SetupJoin) error { return s.Join(ctx, in.Token) }))
	act("recover", 1<<16, with(func(ctx context.Context, in api.SetupRecover) error { return s.Recover(ctx, in.Confirm) }))
	act("rebuild", 1<<16, func(r *http.Request) error { return s.Rebuild(r.Context()) })
	act("leave", 1<<16, func(r *http.Request) error { return s.Leave(r.Context()) })
	act("restore", maxBackup, func(r *http.Request) error { return s.Restore(r.Context(), r.Body) })
	return mux
}

func with[In any](do func(context.Context, In) error) func(*http.Request) error {
	return func(r *http.Request) error {
		var in In
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			return api.Errorf(api.CodeInvalid, "decode request: %v", err)
		}
		return do(r.Context(), in)
	}
}

func answer(w http.ResponseWriter, v any, err error) {
	if err != nil {
		_ = api.WriteProblem(w, transport.Domain(err)) // fails only if the client has gone
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // fails only if the client has gone
}

type uidKey struct{}

// WithPeer is the ConnContext of an http.Server. It records the user ID of the
// process at the other end of a Unix socket (SO_PEERCRED, unix(7)).
func WithPeer(ctx context.Context, c net.Conn) context.Context {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return ctx
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return ctx
	}
	var cred *unix.Ucred
	if cerr := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); cerr != nil || err != nil {
		return ctx
	}
	return context.WithValue(ctx, uidKey{}, cred.Uid)
}
