package auth

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// A valid credential is accepted whatever other clients do: wrong ones are counted
// first by the account that they are for, then by client address, and an address's
// count never refuses a valid credential.
//
// Tokens are 256 random bits and cannot be guessed, so they are checked before anything
// is counted. That costs one read of the tables and one SHA-256; queries to the leader
// are shared by all requests that wait at that moment. More than 100 wrong tokens for
// one credential, or from one address (for IPv6 its /64), are rate-limited.
//
// Passwords can be guessed, and checking one costs a key derivation:
//
//   - An account has ten attempts; each wrong one after them doubles the wait
//     before the next, from a second to a minute. A successful login resets this.
//   - Addresses from which the account has signed in recently have a count of
//     their own: guesses from elsewhere do not delay the account's owner there.
//   - An address has 20 wrong attempts, and one more every ten seconds; a successful
//     login returns its attempt. Further ones are not refused, but have a lower
//     priority (password.Behind): one derivation at a time for all such addresses.
//     This does not affect accounts that have signed in from there recently.
//
// Accounts that do not exist are treated alike. Each node has its own counts; an
// account's count is stored now and then (UserStatus.failures), so that a restarted
// node does not begin at zero.
const (
	freeTries     = 10
	longestWait   = time.Minute
	forgetTries   = 24 * time.Hour
	addressTries  = 20
	addressPerSec = 0.1
)

// tries counts consecutive wrong passwords.
type tries struct {
	count int
	last  time.Time
}

// wait returns the delay before the next attempt after a number of wrong ones.
func wait(count int) time.Duration {
	if count < freeTries {
		return 0
	}
	return min(time.Second<<min(count-freeTries, 16), longestWait)
}

type throttle struct {
	mu  sync.Mutex // guards all
	all map[string]tries
}

func newThrottle() *throttle { return &throttle{all: map[string]tries{}} }

// try counts an attempt, before its password is checked, or returns how long to wait.
// known is the count in the store.
func (t *throttle) try(key string, known tries, now time.Time) (count int, after time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x, ok := t.all[key]
	if !ok {
		x = known
		makeRoom(t.all, func(x tries) time.Time { return x.last })
	}
	if now.Sub(x.last) > forgetTries {
		x = tries{}
	}
	if after := x.last.Add(wait(x.count)).Sub(now); after > 0 {
		return x.count, after
	}
	x = tries{x.count + 1, now}
	t.all[key] = x
	return x.count, 0
}

// forgive resets an account's count.
func (t *throttle) forgive(key string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all[key] = tries{0, now}
}

// noted reports whether a count is to be stored: 10, 20, 40, …
func noted(count int) bool {
	for n := freeTries; n <= count; n *= 2 {
		if n == count {
			return true
		}
	}
	return false
}

// errSlow is the error for clients that exceed a rate limit.
var errSlow = api.Errorf(api.CodeRateLimited, "too many requests").WithHint("wait a second")

// Signed counts requests whose signature is wrong (CodeInvalid), and returns err, or
// errSlow if the client has sent too many.
func (a *Authenticator) Signed(ctx context.Context, err error) error {
	if err != nil && api.CodeOf(err) == api.CodeInvalid && !a.denied.take(addressOf(Request(ctx)), a.opts.Now()) {
		return errSlow
	}
	return err
}

// refused counts an invalid token, and returns why, or errSlow if the client has sent
// too many.
func (a *Authenticator) refused(r *http.Request, token string, why error, now time.Time) error {
	id, _, ok := parseToken(token)
	if ok && !a.wrong.take(id, now) {
		return errSlow
	}
	if !a.denied.take(addressOf(r), now) {
		return errSlow
	}
	return why
}
