package server

import (
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Guessing passwords is slowed down so that nobody is locked out for ever:
//
//   - An address (of IPv6 its /64) has 20 tries, and one more each ten seconds;
//     a login that succeeds gives its try back.
//   - An account has ten tries; each wrong one after them doubles the wait
//     before the next, from a second to a minute. A login forgives.
//   - Where the account has logged in lately from, its tries are counted apart:
//     strangers who guess do not keep its owner waiting there.
//
// Accounts that there are not are treated alike. Counts are each node's own; an
// account's is noted in the store now and then (UserStatus.failures), so that a
// node that starts anew does not begin at nothing.
const (
	freeTries     = 10
	longestWait   = time.Minute
	forgetTries   = 24 * time.Hour
	addressTries  = 20
	addressPerSec = 0.1
)

// tries are wrong passwords in a row.
type tries struct {
	count int
	last  time.Time
}

// wait is how long after a number of wrong tries the next may come.
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

// try counts one, before its password is looked at, or says how long to wait.
// known is what the store remembers.
func (t *throttle) try(key string, known tries, now time.Time) (count int, after time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x, ok := t.all[key]
	if !ok {
		x = known
		if len(t.all) >= maxBuckets {
			t.forget(now)
		}
		if len(t.all) >= maxBuckets {
			key = "" // all share one
			x = t.all[key]
		}
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

// forgive forgets an account's tries.
func (t *throttle) forgive(key string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all[key] = tries{0, now}
}

func (t *throttle) forget(now time.Time) {
	for k, x := range t.all {
		if x.count == 0 || now.Sub(x.last) > forgetTries {
			delete(t.all, k)
		}
	}
}

// noted says whether so many tries are worth a write: 10, 20, 40, …
func noted(count int) bool {
	for n := freeTries; n <= count; n *= 2 {
		if n == count {
			return true
		}
	}
	return false
}

// addressOf is whom a request comes from, as far as addresses tell: an IPv4
// address, or the /64 of an IPv6 one.
func addressOf(remote string) string {
	a, err := netip.ParseAddrPort(remote)
	if err != nil {
		if i := strings.LastIndexByte(remote, ':'); i > 0 {
			return remote[:i]
		}
		return "local" // a unix socket
	}
	ip := a.Addr().Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	return netip.PrefixFrom(ip, 64).Masked().String()
}
