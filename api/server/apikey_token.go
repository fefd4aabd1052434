package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Tokens are "bslt_<key id>_<64 hex digits>": the prefix lets scanners find
// leaked ones, the id finds the key, and of the 32 random bytes only the
// SHA-256 is kept. They are random, so that a slow hash would gain nothing.
const (
	tokenPrefix = "bslt"
	secretBytes = 32
)

// NewAPIKey makes the command that stores a new key, and its token, which is
// nowhere else. The meta's name, organization, project and labels, and the
// spec's role and expiry are the caller's; basaltd makes its first key so.
func NewAPIKey(m api.Meta, spec api.APIKeySpec) (api.Command, string) {
	var secret [secretBytes]byte
	_, _ = rand.Read(secret[:]) // never fails: it ends the process instead
	hash := sha256.Sum256(secret[:])
	spec.Hash = hex.EncodeToString(hash[:])
	id := newID(api.KindAPIKey)
	return api.Command{
		Op: api.OpPutSpec, Kind: api.KindAPIKey, ID: id, Name: m.Name, Organization: m.Organization,
		Project: m.Project, Labels: m.Labels, Data: api.Encode(spec),
	}, tokenPrefix + "_" + id + "_" + hex.EncodeToString(secret[:])
}

// parseToken splits a token; ok is false when it is none.
func parseToken(token string) (id string, secret []byte, ok bool) {
	parts := strings.Split(token, "_")
	if len(parts) != 3 || parts[0] != tokenPrefix || !api.LooksLikeID(parts[1]) {
		return "", nil, false
	}
	secret, err := hex.DecodeString(parts[2])
	return parts[1], secret, err == nil && len(secret) == secretBytes
}

// authenticate finds the key of a token. Every failure that is the caller's is
// the same error.
func (s *Server) authenticate(ctx context.Context, token string, now time.Time) (api.APIKey, error) {
	refused := api.Errorf(api.CodeUnauthenticated, "the API key is not valid").WithHint("it may have been deleted, or expired")
	id, secret, ok := parseToken(token)
	if !ok {
		return api.APIKey{}, refused
	}
	o, err := s.opts.Store.Get(ctx, api.KindAPIKey, id)
	if err != nil {
		if api.CodeOf(err) == api.CodeNotFound {
			err = refused
		}
		return api.APIKey{}, err
	}
	key, err := api.Decode[api.APIKey](o)
	if err != nil {
		return api.APIKey{}, err
	}
	hash := sha256.Sum256(secret)
	same := subtle.ConstantTimeCompare([]byte(hex.EncodeToString(hash[:])), []byte(key.Spec.Hash)) == 1
	expired := key.Spec.ExpiresAt != nil && !now.Before(*key.Spec.ExpiresAt)
	if !same || expired || key.Meta.DeletedAt != nil {
		return api.APIKey{}, refused
	}
	return key, nil
}
