package server

import (
	"context"

	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/outbound"
	"github.com/basalt-gpu/basalt/api/server/auth"
	"github.com/basalt-gpu/basalt/api/server/password"
)

// Options are the options of a server. Store is required; without Runtime or Billing, their operations
// return CodeUnavailable.
type Options struct {
	Store    Store
	Runtime  Runtime
	Billing  Billing
	Payments Payments // nil: no card payments
	Tracer   Tracer
	Room     Room // nil: dry runs do not check the free capacity
	Offers   Offers
	Capacity Capacity
	Cluster  Membership // nil: a node without a cluster
	Packages Packages   // of upgrades; nil: a node without a cluster
	// Stale makes reads with the returned context use this node's state, whichever node
	// leads; nil: the header for stale reads has no effect.
	Stale func(context.Context) context.Context
	// Elsewhere returns the server of another node; nil for this node, and for one that
	// is unreachable. A request that came from another node is not forwarded again.
	Elsewhere func(node api.NodeID) http.Handler
	// Refusals returns what the other nodes have refused of the sign-ins with a provider
	// (Server.RefusedSignIns), and whether all of them have responded; nil: there are no
	// other nodes.
	Refusals func(ctx context.Context, provider string) (all []api.RefusedSignIn, complete bool)
	// Networking means that the cluster has networks: a new project has one, and
	// instances use it unless they name others.
	Networking bool
	// Unavailable are the kinds that nothing here implements, with the reason: creating one
	// is refused instead of waiting forever.
	Unavailable map[api.Kind]string
	// NewVolumeKey generates a volume's key, wrapped with the cluster's; nil: volumes
	// cannot be encrypted.
	NewVolumeKey func(context.Context) (wrapped string, err error)
	// Secrets seals the passwords and keys of backup targets; nil: they are stored
	// unsealed.
	Secrets auth.Secrets
	// SSHGateway returns the cluster's SSH gateway as clients reach it; nil: it has
	// none.
	SSHGateway func(context.Context) (api.SSHGateway, error)
	// Shells opens shells in instances; nil: the cluster has no SSH gateway.
	Shells Shells
	// Apps gives access to what instances serve; nil: the cluster has no app gateway.
	Apps AppGateway
	// URLs defines which addresses this server may contact for identity providers.
	URLs    outbound.Policy
	Version string
	Log     *slog.Logger     // nil: slog.Default
	Now     func() time.Time // nil: time.Now
	// Passwords hashes passwords; nil: at the standard cost.
	Passwords *password.Hasher
	// KeyRate is how many requests per second one key may make on average, with bursts
	// of four times that; 0: 200.
	KeyRate float64
}

// Server is the API as an http.Handler.
type Server struct {
	opts      Options
	echo      *echo.Echo
	auth      *auth.Authenticator
	bridges   bridges
	alerts    alertCache
	vouchers  sync.Mutex // held while a voucher is redeemed
	checkouts sync.Mutex // held while a checkout is begun, since the open ones of an organization are limited
	// parents caches the reseller's ID for organization IDs; it never changes.
	parents sync.Map
}

// New returns a server over a store.
func New(opts Options) (*Server, error) {
	if opts.Store == nil {
		return nil, errors.New("server: no store")
	}
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Passwords == nil {
		opts.Passwords = password.New(password.Standard)
	}
	if opts.KeyRate == 0 {
		opts.KeyRate = 200
	}
	opts.Store = audited{referring{trying{opts.Store}}}
	opts.NewVolumeKey = unlessDry(opts.NewVolumeKey)
	if opts.Secrets != nil {
		opts.Secrets = unsealed{opts.Secrets}
	}
	s := &Server{opts: opts, echo: echo.New(), alerts: alertCache{turn: make(chan struct{}, 1)}}
	s.auth = auth.New(auth.Options{Store: opts.Store, Secrets: opts.Secrets, Stale: opts.Stale, URLs: opts.URLs,
		Log: opts.Log, Now: opts.Now, Passwords: opts.Passwords, KeyRate: opts.KeyRate, ParentIn: s.parentIn, PaysIn: s.paysIn})
	s.echo.HideBanner, s.echo.HidePort = true, true
	s.echo.Binder = strictBinder{}
	s.echo.HTTPErrorHandler = s.sendError
	s.echo.Use(s.recovered, headers)
	if err := s.register(); err != nil {
		return nil, err
	}
	registerDocs(s.echo)
	s.registerScim()
	return s, nil
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.echo.ServeHTTP(w, r) }

// Serve serves requests on a listener until ctx ends, then waits a few seconds for open
// requests. Streams end with ctx.
func (s *Server) Serve(ctx context.Context, l net.Listener) error { return s.ServeWith(ctx, l, s, nil) }

// ServeWith is Serve with a handler that wraps the server, and a function that adds
// values to the context of each connection.
func (s *Server) ServeWith(ctx context.Context, l net.Listener, handler http.Handler, note func(context.Context, net.Conn) context.Context) error {
	h := &http.Server{
		Handler: handler, ConnContext: note, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(s.opts.Log.Handler(), slog.LevelDebug),
	}
	done := make(chan error, 1)
	go func() { done <- h.Serve(l) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := h.Shutdown(end); err != nil {
		_ = h.Close()
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// handlers implements the operations of openapi.yaml, one file per kind.
type handlers struct{ *Server }

// newID returns a new ID of a kind.
func newID(kind api.Kind) string { return api.RandomID(kind) }
