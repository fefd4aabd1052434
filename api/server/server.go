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

// Options of a server. Store is needed; without Runtime or Billing their
// operations answer "unavailable".
type Options struct {
	Store    Store
	Runtime  Runtime
	Billing  Billing
	Payments Payments // nil: nobody pays by card
	Tracer   Tracer
	Room     Room // nil: dry runs do not say whether there is room
	Offers   Offers
	Cluster  Membership // nil: a node that is alone
	Packages Packages   // of upgrades; nil: a node that is alone
	// Stale makes reads with the context answer what this node knows, whoever
	// leads; nil: such reads are as all others.
	Stale func(context.Context) context.Context
	// Elsewhere hands a request to another node's server; nil for this node's
	// own, and for one that cannot be asked. A request that came from another
	// node is not handed on.
	Elsewhere func(node api.NodeID) http.Handler
	// Networking means that the cluster has networks: a project begins with one,
	// and an instance is in it unless it says otherwise.
	Networking bool
	// Lacks are the kinds that nothing here carries out, and why: making one is
	// refused, and does not wait for ever.
	Lacks map[api.Kind]string
	// NewVolumeKey makes a volume's key, wrapped by the cluster's; nil: volumes
	// cannot be encrypted.
	NewVolumeKey func(context.Context) (wrapped string, err error)
	// Secrets seals the passwords and keys of backup targets; nil: they are kept
	// as they are.
	Secrets auth.Secrets
	// SSHGateway is the cluster's, as clients reach it; nil: it has none.
	SSHGateway func(context.Context) (api.SSHGateway, error)
	// Shells opens shells in instances; nil: the cluster has no SSH gateway.
	Shells Shells
	// Apps leads to what instances serve; nil: the cluster has no app gateway.
	Apps AppGateway
	// RequireTotp are the roles that need one-time codes, whatever organizations
	// say.
	RequireTotp []api.Role
	// URLs defines which addresses identity providers may lead this server to.
	URLs    outbound.Policy
	Version string
	Log     *slog.Logger     // nil: slog.Default
	Now     func() time.Time // nil: time.Now
	// Passwords hashes them; nil: at the standard cost.
	Passwords *password.Hasher
	// KeyRate is how many requests a second one key may make on average, with
	// bursts of four times that; 0: 200.
	KeyRate float64
}

// Server is the API as an http.Handler.
type Server struct {
	opts      Options
	echo      *echo.Echo
	auth      *auth.Authenticator
	bridges   bridges
	alerts    alertBoard
	vouchers  sync.Mutex // held while one is redeemed
	checkouts sync.Mutex // held while one is begun: of an organization's, so many may be open
	// parents of organizations, both as ids: they do not change.
	parents sync.Map
}

// New server over a store.
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
	s := &Server{opts: opts, echo: echo.New(), alerts: alertBoard{turn: make(chan struct{}, 1)}}
	s.auth = auth.New(auth.Options{Store: opts.Store, Secrets: opts.Secrets, RequireTotp: opts.RequireTotp, Stale: opts.Stale, URLs: opts.URLs,
		Log: opts.Log, Now: opts.Now, Passwords: opts.Passwords, KeyRate: opts.KeyRate, ParentIn: s.parentIn, PaysIn: s.paysIn})
	s.echo.HideBanner, s.echo.HidePort = true, true
	s.echo.Binder = strictBinder{}
	s.echo.HTTPErrorHandler = s.sendError
	s.echo.Use(s.recovered, headers)
	if err := s.register(); err != nil {
		return nil, err
	}
	registerDocs(s.echo)
	return s, nil
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.echo.ServeHTTP(w, r) }

// Serve answers on a listener until ctx ends, then lets requests finish for a
// few seconds. Streams end with ctx.
func (s *Server) Serve(ctx context.Context, l net.Listener) error { return s.ServeWith(ctx, l, s, nil) }

// ServeWith is Serve with a handler around the server, and with what is noted
// of each connection.
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

// handlers answers the operations of openapi.yaml, one file per kind.
type handlers struct{ *Server }

// newID of a kind.
func newID(kind api.Kind) string { return api.RandomID(kind) }
