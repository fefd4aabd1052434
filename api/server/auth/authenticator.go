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

// Store stores users, their sessions and keys. Package api/storetest documents its
// methods.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
	Get(ctx context.Context, kind api.Kind, id string) (api.Object, error)
	List(ctx context.Context, q api.ListQuery) (api.ListPage, error)
}

// Secrets seals secrets that operators set and no client may see, so that the store's
// files and backups do not reveal them.
type Secrets interface {
	Seal(ctx context.Context, secret string) (sealed string, err error)
	Open(ctx context.Context, sealed string) (secret string, err error)
}

// Options are the options of an authenticator; all except Secrets and Stale are required.
type Options struct {
	Store   Store
	Secrets Secrets // nil: secrets are stored unsealed
	// Passwords hashes passwords.
	Passwords *password.Hasher
	// Stale makes reads with the returned context use this node's state, whichever node
	// leads; nil: the header for stale reads has no effect.
	Stale func(context.Context) context.Context
	// URLs defines which addresses this server may contact for identity providers.
	URLs outbound.Policy
	// KeyRate is how many requests per second one key may make on average, with bursts
	// of four times that.
	KeyRate float64
	// ParentIn returns a function that returns the reseller of an organization, and
	// PaysIn one that returns the price books that an organization may see, both for
	// the duration of a request.
	ParentIn func(context.Context) func(organization string) string
	PaysIn   func(context.Context) func(organization string) PriceBooks
	Now      func() time.Time
	Log      *slog.Logger
}

// Authenticator authenticates callers by a key or session, and begins sessions with a
// password, an identity provider or a link.
type Authenticator struct {
	opts Options
	keys *limiter // counts requests, by key
	// Wrong tokens, by the credential that they name, and by address.
	wrong, denied *limiter
	logins        *limiter // wrong passwords, by address
	// Logins begun with an identity provider, by address, and attempted codes, by the
	// login that they belong to.
	flows, codes *limiter
	// Password resets, by address and by account, and invitations, by the invited
	// account and by the sending organization.
	resetsFrom, resetsOf, invitations, invitationsBy *limiter
	// Voucher codes that were not valid, by organization and caller, and by address.
	vouchers, vouchersFrom *limiter
	// Sign-ups, by client address, by e-mail address, by highest reseller, and in total.
	signUpsFrom, signUpsOf, signUpsAt, signUps *limiter
	captchas                                   *captcha.Verifier
	// guesses counts wrong passwords, by account.
	guesses *throttle
	// oidc has the metadata of operators' providers, and owned that of organizations', of
	// which there may be any number: they do not replace those of operators.
	oidc, owned *oidc.ProviderCache
	refusals    *refusals
	// touched is when the use of a key or session was last due to be recorded.
	touched sync.Map
}

// New returns an authenticator whose counters are zero.
func New(o Options) *Authenticator {
	return &Authenticator{opts: o, keys: newLimiter(o.KeyRate, 4*o.KeyRate), wrong: newLimiter(1, 100), denied: newLimiter(10, 100),
		resetsFrom: newLimiter(1.0/60, 20), resetsOf: newLimiter(1.0/600, 3), invitations: newLimiter(1.0/600, 3), invitationsBy: newLimiter(1.0/60, 30),
		signUpsFrom: newLimiter(1.0/600, 5), signUpsOf: newLimiter(1.0/600, 3), signUpsAt: newLimiter(0.1, 20), signUps: newLimiter(0.5, 60), captchas: captcha.New(o.URLs),
		vouchers: newLimiter(1.0/60, 10), vouchersFrom: newLimiter(1.0/30, 20),
		logins: newLimiter(addressPerSec, addressTries), flows: newLimiter(5, 100), codes: newLimiter(0.01, 5), guesses: newThrottle(),
		oidc: oidc.New(o.Now, o.URLs, o.Log), owned: oidc.New(o.Now, o.URLs, o.Log), refusals: newRefusals()}
}
