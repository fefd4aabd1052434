// Package secrets encrypts the keys of volumes and of Ceph's disks, and the states of
// virtual machines, with keys of the cluster, so the files and backups of the store alone open no disk.
//
//	Ring (an internal object of the store) ── Seal ──► "basalt-seal:1:KEY-ID:BASE64"
//	                                       ◄── Open ──
//
// It uses AES-256-GCM with a random nonce (NIST SP 800-38D, section 8.2.2, permits
// 2^32 encryptions per key, more than a cluster has volumes). The text names the
// key that it was sealed with, so a new key can be added to a ring that still opens
// older texts.
package secrets

import (
	"bytes"
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
	form      = "basalt-seal:1:"
	stateForm = "basalt-state:1:"
	keyBytes  = 32
	idBytes   = 4
	// maxSealed is the maximum length of a sealed text.
	maxSealed = 8192
	// maxState is the maximum length of a sealed state of a machine.
	maxState = 1 << 20
	maxKeys  = 64
	// passphraseBytes is the number of random bytes in a passphrase. QEMU's LUKS
	// derives its key from text.
	passphraseBytes = 32
)

// Purposes of a sealed text. The purpose is authenticated with the text, so a text
// for one purpose is not accepted for another.
const (
	forVolume = "basalt volume key"
	forSecret = "basalt secret"
	forState  = "basalt machine state " // the volume's ID follows
	forOSD    = "basalt OSD key "       // the OSD's UUID follows
)

// Key is a key of the cluster.
type Key struct {
	ID     string `json:"id"`
	Secret []byte `json:"secret"`
}

// Ring holds all keys of the cluster. The last one is the newest and is used to
// seal.
type Ring struct {
	Keys []Key `json:"keys"`
}

// NewRing returns a ring with one random key.
func NewRing() Ring { return Ring{}.Grow() }

// Grow returns the ring with another key, which is used to seal from now on.
func (r Ring) Grow() Ring {
	id, secret := make([]byte, idBytes), make([]byte, keyBytes)
	_, _ = rand.Read(id) // crypto/rand never returns an error
	_, _ = rand.Read(secret)
	return Ring{append(append([]Key(nil), r.Keys...), Key{hex.EncodeToString(id), secret})}
}

// NewPassphrase returns a random passphrase for a volume or an OSD, as text for QEMU's
// LUKS.
func NewPassphrase() []byte {
	raw := make([]byte, passphraseBytes)
	_, _ = rand.Read(raw)
	return []byte(base64.RawURLEncoding.EncodeToString(raw))
}

// ErrSealed is returned for a text that cannot be opened: it is not from this
// cluster, was modified, or was sealed with a key that the ring does not have.
var ErrSealed = errors.New("it was not sealed with a key of this cluster")

// Seal seals a volume's passphrase.
func (r Ring) Seal(passphrase []byte) (string, error) { return r.seal(passphrase, forVolume) }

// Open opens a passphrase sealed by Seal.
func (r Ring) Open(sealed string) ([]byte, error) { return r.open(sealed, forVolume) }

// SealSecret seals a password or key that an operator supplied or that was
// generated.
func (r Ring) SealSecret(secret []byte) (string, error) { return r.seal(secret, forSecret) }

// OpenSecret opens a secret sealed by SealSecret.
func (r Ring) OpenSecret(sealed string) ([]byte, error) { return r.open(sealed, forSecret) }

func (r Ring) seal(plain []byte, purpose string) (string, error) {
	id, raw, err := r.encrypt(plain, purpose)
	if err != nil {
		return "", err
	}
	return form + id + ":" + base64.RawStdEncoding.EncodeToString(raw), nil
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
	return r.decrypt(id, raw, purpose)
}

// SealOSDKey seals the key of an encrypted OSD. It opens only for the OSD that it was
// sealed for.
func (r Ring) SealOSDKey(osd string, key []byte) (string, error) { return r.seal(key, forOSD+osd) }

// OpenOSDKey opens a key sealed by SealOSDKey.
func (r Ring) OpenOSDKey(osd, sealed string) ([]byte, error) { return r.open(sealed, forOSD+osd) }

// SealState seals the state of a virtual machine that is stored beside its root
// volume. Unlike the other texts, it is binary after the ID of the key. It opens
// only beside the volume that it was sealed for.
func (r Ring) SealState(volume string, state []byte) ([]byte, error) {
	id, raw, err := r.encrypt(state, forState+volume)
	if err != nil {
		return nil, err
	}
	return append([]byte(stateForm+id+":"), raw...), nil
}

// OpenState opens a state sealed by SealState.
func (r Ring) OpenState(volume string, sealed []byte) ([]byte, error) {
	rest, ok := bytes.CutPrefix(sealed, []byte(stateForm))
	id, raw, two := bytes.Cut(rest, []byte(":"))
	if !ok || !two || len(sealed) > maxState {
		return nil, ErrSealed
	}
	return r.decrypt(string(id), raw, forState+volume)
}

// encrypt encrypts plain with the newest key of the ring.
func (r Ring) encrypt(plain []byte, purpose string) (id string, raw []byte, err error) {
	if len(r.Keys) == 0 {
		return "", nil, errors.New("the cluster has no key to seal with")
	}
	key := r.Keys[len(r.Keys)-1]
	box, err := key.box()
	if err != nil {
		return "", nil, err
	}
	nonce := make([]byte, box.NonceSize())
	_, _ = rand.Read(nonce)
	return key.ID, box.Seal(nonce, nonce, plain, []byte(purpose)), nil
}

// decrypt decrypts what encrypt has encrypted with the key id.
func (r Ring) decrypt(id string, raw []byte, purpose string) ([]byte, error) {
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
