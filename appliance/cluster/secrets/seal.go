// Package secrets wraps the keys of volumes with keys of the cluster's, so that
// what lies in the store's files and backups opens no disk by itself.
//
//	Ring (an internal object of the store) ── Seal ──► "basalt-seal:1:KEY-ID:BASE64"
//	                                       ◄── Open ──
//
// AES-256-GCM with a random nonce (NIST SP 800-38D, section 8.2.2: not more
// than 2^32 for one key, which no cluster has volumes). The text names the key
// that it was sealed with, so a ring can get a new one and open what is old.
package secrets

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

const (
	form     = "basalt-seal:1:"
	keyBytes = 32
	idBytes  = 4
	// maxSealed is the length of the longest text that is looked at.
	maxSealed = 8192
	maxKeys   = 64
	// passphraseBytes of randomness: QEMU's LUKS derives its key from text.
	passphraseBytes = 32
)

// What a text was sealed for is bound into it: none is taken for one of another
// kind.
const (
	forVolume = "basalt volume key"
	forSecret = "basalt secret"
)

// Key of the cluster's.
type Key struct {
	ID     string `json:"id"`
	Secret []byte `json:"secret"`
}

// Ring is all of them, the newest last: it seals.
type Ring struct {
	Keys []Key `json:"keys"`
}

// NewRing has one key, drawn at random.
func NewRing() Ring { return Ring{}.Grow() }

// Grow is the ring with one key more, with which it seals from now on.
func (r Ring) Grow() Ring {
	id, secret := make([]byte, idBytes), make([]byte, keyBytes)
	_, _ = rand.Read(id) // crypto/rand never fails
	_, _ = rand.Read(secret)
	return Ring{append(append([]Key(nil), r.Keys...), Key{hex.EncodeToString(id), secret})}
}

// NewPassphrase is one for a volume: text, as QEMU's LUKS wants it.
func NewPassphrase() []byte {
	raw := make([]byte, passphraseBytes)
	_, _ = rand.Read(raw)
	return []byte(base64.RawURLEncoding.EncodeToString(raw))
}

// ErrSealed is what Open answers for what it cannot open: made by nobody of
// this cluster, changed, or sealed with a key that the ring does not have.
var ErrSealed = errors.New("it was not sealed with a key of this cluster")

// Seal wraps a volume's passphrase.
func (r Ring) Seal(passphrase []byte) (string, error) { return r.seal(passphrase, forVolume) }

// Open unwraps it.
func (r Ring) Open(sealed string) ([]byte, error) { return r.open(sealed, forVolume) }

// SealSecret wraps a password or key that an operator gave, or that was made.
func (r Ring) SealSecret(secret []byte) (string, error) { return r.seal(secret, forSecret) }

// OpenSecret unwraps it.
func (r Ring) OpenSecret(sealed string) ([]byte, error) { return r.open(sealed, forSecret) }

func (r Ring) seal(plain []byte, purpose string) (string, error) {
	if len(r.Keys) == 0 {
		return "", errors.New("the cluster has no key to seal with")
	}
	key := r.Keys[len(r.Keys)-1]
	box, err := key.box()
	if err != nil {
		return "", err
	}
	nonce := make([]byte, box.NonceSize())
	_, _ = rand.Read(nonce)
	return form + key.ID + ":" + base64.RawStdEncoding.EncodeToString(box.Seal(nonce, nonce, plain, []byte(purpose))), nil
}

func (r Ring) open(sealed string, purpose string) ([]byte, error) {
	rest, ok := strings.CutPrefix(sealed, form)
	id, text, two := strings.Cut(rest, ":")
	if !ok || !two || len(sealed) > maxSealed {
		return nil, ErrSealed
	}
	raw, err := base64.RawStdEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, ErrSealed
	}
	for _, key := range r.Keys[:min(len(r.Keys), maxKeys)] {
		if key.ID != id {
			continue
		}
		box, err := key.box()
		if err != nil {
			return nil, err
		}
		if len(raw) < box.NonceSize() {
			return nil, ErrSealed
		}
		plain, err := box.Open(nil, raw[:box.NonceSize()], raw[box.NonceSize():], []byte(purpose))
		if err != nil {
			return nil, ErrSealed
		}
		return plain, nil
	}
	return nil, ErrSealed
}

func (k Key) box() (cipher.AEAD, error) {
	if len(k.Secret) != keyBytes {
		return nil, fmt.Errorf("key %q has %d bytes, want %d", k.ID, len(k.Secret), keyBytes)
	}
	block, err := aes.NewCipher(k.Secret)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
