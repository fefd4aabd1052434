package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// Tokens are "bslt_<id>_<64 hex digits>": the prefix lets scanners find leaked tokens,
// the ID identifies the key, session or user, and of the 32 random bytes only the
// SHA-256 is stored. Since they are random, a slow hash would not be safer.
const (
	tokenPrefix = "bslt"
	secretBytes = 32
)

// NewToken returns a new token for an object, and the hash to store.
func NewToken(id string) (token, hash string) {
	var secret [secretBytes]byte
	_, _ = rand.Read(secret[:]) // never returns an error: it aborts the process instead
	sum := sha256.Sum256(secret[:])
	return tokenPrefix + "_" + id + "_" + hex.EncodeToString(secret[:]), hex.EncodeToString(sum[:])
}

// sameHash reports whether hash is the hash of secret.
func sameHash(secret []byte, hash string) bool {
	sum := sha256.Sum256(secret)
	return subtle.ConstantTimeCompare([]byte(hex.EncodeToString(sum[:])), []byte(hash)) == 1
}

// NewAPIKey returns the command that stores a new key, and its token, which is not
// stored. The caller sets the meta's name, organization, project and labels, and the
// spec's role and expiry; basaltd creates its first key with it.
func NewAPIKey(m api.Meta, spec api.APIKeySpec) (api.Command, string) {
	id := api.RandomID(api.KindAPIKey)
	token, hash := NewToken(id)
	spec.Hash = hash
	return api.Command{
		Op: api.OpPutSpec, Kind: api.KindAPIKey, ID: id, Name: m.Name, Organization: m.Organization,
		Project: m.Project, Labels: m.Labels, Data: api.Encode(spec),
	}, token
}

// parseToken splits a token; ok is false if it is malformed.
func parseToken(token string) (id string, secret []byte, ok bool) {
	parts := strings.Split(token, "_")
	if len(parts) != 3 || parts[0] != tokenPrefix || !api.LooksLikeID(parts[1]) {
		return "", nil, false
	}
	secret, err := hex.DecodeString(parts[2])
	return parts[1], secret, err == nil && len(secret) == secretBytes
}

// errRefused is the error for every invalid token, whatever the reason.
var errRefused = api.Errorf(api.CodeUnauthenticated, "the API key is not valid").WithHint("it may have been deleted or have expired; if it is a session, sign in again")
