package auth

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// GuessVoucher counts an attempt with a voucher code, before it is checked, against the
// organization, the caller and the client address, or returns an error. The caller
// calls forgive for a valid code, which undoes the count.
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
			forgive() // the refused attempt is not counted by the limiters that had room
			return nil, api.Errorf(api.CodeRateLimited, "too many codes that are not valid").WithHint("wait a few minutes")
		}
		taken = append(taken, func() { x.of.give(x.key) })
	}
	return forgive, nil
}

// Opened returns the plain text of what Sealed has sealed.
func (a *Authenticator) Opened(ctx context.Context, sealed string) (string, error) {
	return a.unsealed(ctx, sealed)
}
