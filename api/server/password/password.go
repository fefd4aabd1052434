// Package password stores passwords as argon2id hashes (RFC 9106) in the PHC string
// format:
//
//	$argon2id$v=19$m=65536,t=3,p=1$SALT$HASH
//
// The string contains its parameters, so that they can be raised: Stale reports whether
// a hash has other parameters than the current ones. Since each derivation takes much
// memory, only a few run at a time.
package password

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"golang.org/x/crypto/argon2"

	"github.com/basalt-gpu/basalt/api"
)

// Cost is the cost of a derivation.
type Cost struct {
	MemoryKiB, Passes uint32
	Lanes             uint8
}

// Standard is the recommendation of RFC 9106 for limited memory (section 4), with one
// lane, so that a login occupies one CPU.
var Standard = Cost{MemoryKiB: 64 << 10, Passes: 3, Lanes: 1}

const (
	saltBytes = 16
	hashBytes = 32
	// Limits of the parameters in a stored string: the current ones, with room for
	// higher ones.
	maxMemoryKiB, maxPasses, maxLanes = 1 << 20, 64, 16
	maxText                           = 256
	// atOnce limits the derivations that run at a time, at most one of them with a
	// Behind context. waiting and waitingBehind limit those that wait; more are
	// refused.
	atOnce, waiting, waitingBehind = 2, 64, 16
)

// Hasher derives hashes, a few at a time.
type Hasher struct {
	cost    Cost
	turn    chan struct{} // held by running derivations
	behind  chan struct{} // held by the Behind derivation that runs or is next
	queue   atomic.Int64
	late    atomic.Int64 // Behind derivations that run or wait
	derived atomic.Int64
	dummy   string
}

// New returns a hasher with a cost.
func New(c Cost) *Hasher {
	return &Hasher{cost: c, turn: make(chan struct{}, atOnce), behind: make(chan struct{}, 1), dummy: encode(c, make([]byte, saltBytes), make([]byte, hashBytes))}
}

type behindKey struct{}

// Behind returns a context whose derivations have a lower priority: only one of them
// runs at a time, and all other capacity is left to the others.
func Behind(ctx context.Context) context.Context { return context.WithValue(ctx, behindKey{}, true) }

// Derived returns the number of derivations so far.
func (h *Hasher) Derived() int64 { return h.derived.Load() }

// Hash returns the hash of a new password.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // never returns an error
	sum, err := h.derive(ctx, h.cost, salt, password)
	return encode(h.cost, salt, sum), err
}

// Check reports whether the password matches the hash. An empty hash matches none,
// after the same work.
func (h *Hasher) Check(ctx context.Context, hash, password string) (bool, error) {
	nobody := hash == ""
	if nobody {
		hash = h.dummy
	}
	c, salt, want, err := parse(hash)
	if err != nil {
		return false, err
	}
	sum, err := h.derive(ctx, c, salt, password)
	return err == nil && subtle.ConstantTimeCompare(sum, want) == 1 && !nobody, err
}

// Stale reports whether a hash was made with other parameters than the current ones.
func (h *Hasher) Stale(hash string) bool {
	c, _, _, err := parse(hash)
	return err != nil || c != h.cost
}

func (h *Hasher) derive(ctx context.Context, c Cost, salt []byte, password string) ([]byte, error) {
	queue, most := &h.queue, int64(waiting)
	late := ctx.Value(behindKey{}) != nil
	if late {
		queue, most = &h.late, waitingBehind
	}
	if queue.Add(1) > most {
		queue.Add(-1)
		return nil, api.Errorf(api.CodeRateLimited, "too many sign-ins at once").WithHint("try again in a moment")
	}
	defer queue.Add(-1)
	if late {
		select {
		case h.behind <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		defer func() { <-h.behind }()
	}
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-h.turn }()
	h.derived.Add(1)
	return argon2.IDKey([]byte(password), salt, c.Passes, c.MemoryKiB, c.Lanes, hashBytes), nil
}

var errForm = errors.New("not a valid argon2id hash")

func encode(c Cost, salt, sum []byte) string {
	b64 := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, c.MemoryKiB, c.Passes, c.Lanes, b64(salt), b64(sum))
}

// parse accepts exactly what encode writes.
func parse(s string) (c Cost, salt, sum []byte, err error) {
	parts := strings.Split(s, "$")
	if len(s) > maxText || len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return c, nil, nil, errForm
	}
	if n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &c.MemoryKiB, &c.Passes, &c.Lanes); n != 3 || err != nil {
		return c, nil, nil, errForm
	}
	strict := base64.RawStdEncoding.Strict()
	salt, errSalt := strict.DecodeString(parts[4])
	sum, errSum := strict.DecodeString(parts[5])
	switch {
	case errSalt != nil || errSum != nil || len(salt) != saltBytes || len(sum) != hashBytes:
		return c, nil, nil, errForm
	case c.Lanes < 1 || c.Lanes > maxLanes || c.Passes < 1 || c.Passes > maxPasses:
		return c, nil, nil, errForm
	case c.MemoryKiB < 8*uint32(c.Lanes) || c.MemoryKiB > maxMemoryKiB || encode(c, salt, sum) != s:
		return c, nil, nil, errForm
	}
	return c, salt, sum, nil
}
