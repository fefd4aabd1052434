package secrets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/basalt-gpu/basalt/api"
)

// Store is the part of the cluster's store that KeyStore uses.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
	Get(ctx context.Context, kind api.Kind, id string) (api.Object, error)
}

// ringID is the ID of the cluster's only VolumeKeys.
const ringID = "volumekeys-cluster"

// KeyStore holds the cluster's key ring from its store. The ring is created when it is
// first needed.
type KeyStore struct {
	store Store

	mu   sync.Mutex
	ring Ring
}

// NewKeyStore returns a KeyStore that has not read the ring yet.
func NewKeyStore(s Store) *KeyStore { return &KeyStore{store: s} }

// NewKey generates a volume's passphrase and returns it sealed.
func (k *KeyStore) NewKey(ctx context.Context) (sealed string, err error) {
	r, err := k.load(ctx, true)
	if err != nil {
		return "", err
	}
	return r.Seal(NewPassphrase())
}

// Unwrap returns the passphrase of an encrypted volume.
func (k *KeyStore) Unwrap(ctx context.Context, v api.Volume) ([]byte, error) {
	plain, err := k.open(ctx, func(r Ring) ([]byte, error) { return r.Open(v.Spec.WrappedKey) })
	if errors.Is(err, ErrSealed) {
		return nil, errors.Join(api.Errorf(api.CodeInvalid, "the cluster has no key that opens volume %s", v.Meta.Name).
			WithHint("it may have been restored from another cluster"), err)
	}
	return plain, err
}

// Seal seals a secret that an operator supplied or that was generated.
func (k *KeyStore) Seal(ctx context.Context, secret string) (sealed string, err error) {
	r, err := k.load(ctx, true)
	if err != nil {
		return "", err
	}
	return r.SealSecret([]byte(secret))
}

// Open opens a secret that was sealed by Seal.
func (k *KeyStore) Open(ctx context.Context, sealed string) (secret string, err error) {
	plain, err := k.open(ctx, func(r Ring) ([]byte, error) { return r.OpenSecret(sealed) })
	if errors.Is(err, ErrSealed) {
		err = errors.Join(api.Errorf(api.CodeInvalid, "the cluster has no key that opens this secret").
			WithHint("it may have been restored from another cluster"), err)
	}
	return string(plain), err
}

// SealState seals the state of the machine whose root volume has the given ID.
func (k *KeyStore) SealState(ctx context.Context, volume api.VolumeID, state []byte) ([]byte, error) {
	r, err := k.load(ctx, true)
	if err != nil {
		return nil, err
	}
	return r.SealState(string(volume), state)
}

// OpenState opens a state that was sealed for the volume by SealState.
func (k *KeyStore) OpenState(ctx context.Context, volume api.VolumeID, sealed []byte) ([]byte, error) {
	plain, err := k.open(ctx, func(r Ring) ([]byte, error) { return r.OpenState(string(volume), sealed) })
	if errors.Is(err, ErrSealed) {
		return nil, errors.Join(api.Errorf(api.CodeInvalid, "the cluster has no key that opens the machine state beside volume %s", volume).
			WithHint("it may have been restored from another cluster"), err)
	}
	return plain, err
}

// NewOSDKey generates the key of an encrypted OSD and returns it sealed.
func (k *KeyStore) NewOSDKey(ctx context.Context, osd string) (sealed string, err error) {
	r, err := k.load(ctx, true)
	if err != nil {
		return "", err
	}
	return r.SealOSDKey(osd, NewPassphrase())
}

// OpenOSDKey returns the key of an encrypted OSD.
func (k *KeyStore) OpenOSDKey(ctx context.Context, osd, sealed string) (key string, err error) {
	plain, err := k.open(ctx, func(r Ring) ([]byte, error) { return r.OpenOSDKey(osd, sealed) })
	if errors.Is(err, ErrSealed) {
		return "", errors.Join(api.Errorf(api.CodeInvalid, "the cluster has no key that opens the disk of OSD %s", osd).
			WithHint("it may have been restored from another cluster"), err)
	}
	return string(plain), err
}

// open calls f with the cached ring, and with the store's ring if the cached one
// has no matching key.
func (k *KeyStore) open(ctx context.Context, f func(Ring) ([]byte, error)) ([]byte, error) {
	k.mu.Lock()
	r := k.ring
	k.mu.Unlock()
	plain, err := f(r)
	if errors.Is(err, ErrSealed) {
		if r, err = k.load(ctx, false); err != nil {
			return nil, err
		}
		plain, err = f(r)
	}
	return plain, err
}

func (k *KeyStore) load(ctx context.Context, found bool) (Ring, error) {
	for {
		o, err := k.store.Get(ctx, api.KindVolumeKeys, ringID)
		if api.CodeOf(err) == api.CodeNotFound && found {
			cmd := api.Command{Op: api.OpPutSpec, Kind: api.KindVolumeKeys, ID: ringID, Name: "cluster", Data: api.Encode(NewRing())}
			_, err = k.store.Apply(ctx, api.Batch{Commands: []api.Command{cmd}})
			if c := api.CodeOf(err); err == nil || c == api.CodeExists || c == api.CodeConflict {
				continue // read the ring, which another node may have written
			}
		}
		if api.CodeOf(err) == api.CodeNotFound {
			return Ring{}, nil
		}
		if err != nil {
			return Ring{}, fmt.Errorf("read the keys of volumes: %w", err)
		}
		var r Ring
		if err := json.Unmarshal(o.Spec, &r); err != nil {
			return Ring{}, fmt.Errorf("decode key ring of the cluster: %w", err)
		}
		k.mu.Lock()
		k.ring = r
		k.mu.Unlock()
		return r, nil
	}
}
