package metadata

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// tokens creates and checks tokens without storing them: a token contains its
// expiry, and a MAC over the expiry and its instance. After a restart or a
// migration the guest gets a 401 and requests another, as clients of EC2 do.
type tokens struct {
	key [32]byte
	now func() time.Time
}

func newTokens(now func() time.Time) *tokens {
	t := &tokens{now: now}
	_, _ = rand.Read(t.key[:]) // never fails: it crashes the process instead
	return t
}

func (t *tokens) make(id api.InstanceID, ttl time.Duration) string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(t.now().Add(ttl).Unix()))
	return base64.RawURLEncoding.EncodeToString(append(b[:], t.seal(b, id)...))
}

func (t *tokens) good(token string, id api.InstanceID) bool {
	if len(token) > 128 {
		return false
	}
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(text) != 8+sha256.Size {
		return false
	}
	until := [8]byte(text)
	return hmac.Equal(text[8:], t.seal(until, id)) && t.now().Unix() < int64(binary.BigEndian.Uint64(until[:]))
}

func (t *tokens) seal(until [8]byte, id api.InstanceID) []byte {
	mac := hmac.New(sha256.New, t.key[:])
	mac.Write(until[:])
	mac.Write([]byte(id))
	return mac.Sum(nil)
}
