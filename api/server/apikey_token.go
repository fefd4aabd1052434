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

// Tokens are "bslt_<id>_<64 hex digits>": the prefix lets scanners find leaked
// ones, the id finds the key, session or user, and of the 32 random bytes only
// the SHA-256 is kept. They are random, so that a slow hash would gain nothing.
const (
	tokenPrefix = "bslt"
	secretBytes = 32
)

// newToken of an object, and the hash that is kept of it.
func newToken(id string) (token, hash string) {
	var secret [secretBytes]byte
	_, _ = rand.Read(secret[:]) // never fails: it ends the process instead
	sum := sha256.Sum256(secret[:])
	return tokenPrefix + "_" + id + "_" + hex.EncodeToString(secret[:]), hex.EncodeToString(sum[:])
}

// sameHash reports whether the hash is the secret's.
func sameHash(secret []byte, hash string) bool {
	sum := sha256.Sum256(secret)
	return subtle.ConstantTimeCompare([]byte(hex.EncodeToString(sum[:])), []byte(hash)) == 1
}

// NewAPIKey makes the command that stores a new key, and its token, which is
// nowhere else. The meta's name, organization, project and labels, and the
// spec's role and expiry are the caller's; basaltd makes its first key so.
func NewAPIKey(m api.Meta, spec api.APIKeySpec) (api.Command, string) {
	id := newID(api.KindAPIKey)
	token, hash := newToken(id)
	spec.Hash = hash
	return api.Command{
		Op: api.OpPutSpec, Kind: api.KindAPIKey, ID: id, Name: m.Name, Organization: m.Organization,
		Project: m.Project, Labels: m.Labels, Data: api.Encode(spec),
	}, token
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

// errRefused is the answer to every token that is not good, whatever is wrong.
var errRefused = api.Errorf(api.CodeUnauthenticated, "the API key is not valid").WithHint("it may have been deleted, or expired; a session may have ended: log in again")

// stored is an object that a token leads to; none is errRefused.
func stored[T any](ctx context.Context, s *Server, kind api.Kind, id string) (T, error) {
	var none T
	o, err := s.opts.Store.Get(ctx, kind, id)
	if err != nil {
		if api.CodeOf(err) == api.CodeNotFound {
			err = errRefused
		}
		return none, err
	}
	return api.Decode[T](o)
}

// authenticate finds whom a token stands for. Every failure that is the
// caller's is the same error.
func (s *Server) authenticate(ctx context.Context, token string, now time.Time) (identity, error) {
	id, secret, ok := parseToken(token)
	if !ok {
		return identity{}, errRefused
	}
	switch kind, _ := api.KindOfID(id); kind {
	case api.KindAPIKey:
		return s.keyIdentity(ctx, id, secret, now)
	case api.KindSession:
		return s.sessionIdentity(ctx, id, secret, now)
	}
	return identity{}, errRefused
}

// keyIdentity is whom an API key stands for.
func (s *Server) keyIdentity(ctx context.Context, id string, secret []byte, now time.Time) (identity, error) {
	key, err := stored[api.APIKey](ctx, s, api.KindAPIKey, id)
	if err != nil {
		return identity{}, err
	}
	end := key.Spec.ExpiresAt
	good := sameHash(secret, key.Spec.Hash)
	if old := key.Spec.OldExpiresAt; !good && old != nil && sameHash(secret, key.Spec.OldHash) {
		if good = true; end == nil || old.Before(*end) {
			end = old
		}
	}
	if !good || end != nil && !now.Before(*end) || key.Meta.DeletedAt != nil {
		return identity{}, errRefused
	}
	spec := string(api.Encode(key.Spec))
	return identity{
		id: id, kind: api.KindAPIKey, name: key.Meta.Name, role: key.Spec.Role, org: key.Meta.Organization, project: key.Meta.Project,
		scopes: key.Spec.Scopes, networks: key.Spec.Networks, expiresAt: end, usedAt: key.Status.LastUsedAt, parentOf: s.parentIn(ctx), pays: s.paysIn(ctx),
		ended: func(e api.Event) bool {
			if e.Object.Kind != api.KindAPIKey || e.Object.Meta.ID != id {
				return false
			}
			now, err := api.Decode[api.APIKey](e.Object)
			// Whatever was changed of it: who still may begins again.
			return err != nil || e.Type == api.EventRemove || now.Meta.DeletedAt != nil || string(api.Encode(now.Spec)) != spec
		},
	}, nil
}
