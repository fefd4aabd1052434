package auth

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/outbound"
	"github.com/basalt-gpu/basalt/api/server/captcha"
	"github.com/basalt-gpu/basalt/api/server/oidc"
	"github.com/basalt-gpu/basalt/api/server/password"
)

// Store keeps users, their sessions and keys. Package api/storetest says what each
// method does.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
	Get(ctx context.Context, kind api.Kind, id string) (api.Object, error)
	List(ctx context.Context, q api.ListQuery) (api.ListPage, error)
}

// Secrets seals what operators give and no client may see: what lies in the
// store's files and backups is of no use by itself.
type Secrets interface {
	Seal(ctx context.Context, secret string) (sealed string, err error)
	Open(ctx context.Context, sealed string) (secret string, err error)
}

// Options of an authenticator; all but Secrets, RequireTotp and Stale are needed.
type Options struct {
	Store   Store
	Secrets Secrets // nil: secrets are kept as they are
	// Passwords hashes them.
	Passwords *password.Hasher
	// RequireTotp are the roles that need one-time codes, whatever organizations
	// say.
	RequireTotp []api.Role
	// Stale makes reads with the context answer what this node knows, whoever
	// leads; nil: such reads are as all others.
	Stale func(context.Context) context.Context
	// URLs defines which addresses identity providers may lead this server to.
	URLs outbound.Policy
	// KeyRate is how many requests a second one key may make on average, with
	// bursts of four times that.
	KeyRate float64
	// ParentIn is the reseller of an organization, and PaysIn says which price
	// books an organization has to do with, while a request lasts.
	ParentIn func(context.Context) func(organization string) string
	PaysIn   func(context.Context) func(organization string) PriceBooks
	Now      func() time.Time
	Log      *slog.Logger
}

// Authenticator knows who asks: by a key or session, which it checks, and by what
// begins a session: a password, an identity provider, a link.
type Authenticator struct {
	opts Options
	keys *limiter // requests, by key
	// Wrong tokens, by the credential that they name and by address.
	wrong, denied *limiter
	logins        *limiter // wrong passwords, by address
	// Logins with an identity provider that begin, by address, and codes that
	// were tried, by the login that had begun.
	flows, codes *limiter
	// Passwords that were forgotten, by address and by account, and invitations, by
	// the account and by the organization that sends them.
	resetsFrom, resetsOf, invitations, invitationsBy *limiter
	// Codes of vouchers that gave nothing, by organization and caller, and by address.
	vouchers, vouchersFrom *limiter
	// People who sign up, by where they are, by address, and all together.
	signUpsFrom, signUpsOf, signUps *limiter
	captchas                        *captcha.Verifier
	// guesses are wrong passwords, by account.
	guesses *throttle
	oidc    *oidc.Asker
	// touched is when the use of a key or session was last to be noted.
	touched sync.Map
}

// New returns an authenticator with nothing counted yet.
func New(o Options) *Authenticator {
	return &Authenticator{opts: o, keys: newLimiter(o.KeyRate, 4*o.KeyRate), wrong: newLimiter(1, 100), denied: newLimiter(10, 100),
		resetsFrom: newLimiter(1.0/60, 20), resetsOf: newLimiter(1.0/600, 3), invitations: newLimiter(1.0/600, 3), invitationsBy: newLimiter(1.0/60, 30),
		signUpsFrom: newLimiter(1.0/600, 5), signUpsOf: newLimiter(1.0/600, 3), signUps: newLimiter(0.5, 60), captchas: captcha.New(o.URLs),
		vouchers: newLimiter(1.0/60, 10), vouchersFrom: newLimiter(1.0/30, 20),
		logins: newLimiter(addressPerSec, addressTries), flows: newLimiter(5, 100), codes: newLimiter(0.01, 5), guesses: newThrottle(),
		oidc: oidc.New(o.Now, o.URLs, o.Log)}
}
