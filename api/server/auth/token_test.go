package auth

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

func FuzzToken(f *testing.F) {
	_, token := NewAPIKey(api.Meta{}, api.APIKeySpec{})
	f.Add(token)
	f.Add("bslt_key-000000000000_")
	f.Fuzz(func(t *testing.T, token string) {
		if id, secret, ok := parseToken(token); ok && (!api.LooksLikeID(id) || len(secret) != secretBytes) {
			t.Errorf("parseToken(%q) = ID %q and %d bytes, want a valid ID and %d bytes", token, id, len(secret), secretBytes)
		}
	})
}
