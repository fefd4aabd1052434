package auth

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// GuessVoucher counts a voucher's code before it is looked at, against the
// organization, who asks, and the address that it comes from; or refuses. What it
// returns takes the count back, for a code that was good.
func (a *Authenticator) GuessVoucher(ctx context.Context, organization string) (forgive func(), err error) {
	now, address := a.opts.Now(), addressOf(Request(ctx))
	var taken []func()
	forgive = func() {
		for _, give := range taken {
			give()
		}
	}
	for _, x := range []struct {
		of  *limiter
		key string
	}{{a.vouchers, organization}, {a.vouchers, Caller(ctx).ID}, {a.vouchersFrom, address}} {
		if !x.of.take(x.key, now) {
			forgive() // who is refused is not counted where there was room
			return nil, api.Errorf(api.CodeRateLimited, "too many codes that are not valid").WithHint("wait a few minutes")
		}
		taken = append(taken, func() { x.of.give(x.key) })
	}
	return forgive, nil
}

// Opened is what Sealed has sealed.
func (a *Authenticator) Opened(ctx context.Context, sealed string) (string, error) {
	return a.unsealed(ctx, sealed)
}
