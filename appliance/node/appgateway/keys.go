package appgateway

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/sealed"
)

// keysID is the ID of the cluster's only AppAuthority.
const keysID = "appauthority-cluster"

const keyBytes = 32 // of HS256

// keysSpec is the stored object: the key in hexadecimal, sealed.
type keysSpec struct {
	Key string `json:"key"`
}

// Keys signs passes with a key that all nodes share. The key is generated when it
// is first needed. Keys may be used concurrently.
type Keys struct {
	store  sealed.Store
	sealer sealed.Sealer

	mu  sync.Mutex // guards key; held while it is read from the store
	key []byte
}

// NewKeys returns keys that are read from the store when first needed.
func NewKeys(s sealed.Store, sealer sealed.Sealer) *Keys { return &Keys{store: s, sealer: sealer} }

func (k *Keys) load(ctx context.Context) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.key != nil {
		return k.key, nil
	}
	o, err := sealed.Object(ctx, k.store, api.KindAppAuthority, keysID, k.make)
	if err == nil {
		k.key, err = k.read(ctx, o)
	}
	if err != nil {
		return nil, fmt.Errorf("read the key of the app gateway: %w", err)
	}
	return k.key, nil
}

func (k *Keys) read(ctx context.Context, o api.Object) ([]byte, error) {
	var s keysSpec
	if err := json.Unmarshal(o.Spec, &s); err != nil {
		return nil, fmt.Errorf("decode session key of the app gateway: %w", err)
	}
	text, err := k.sealer.Open(ctx, s.Key)
	if err != nil {
		return nil, fmt.Errorf("unseal it: %w", err)
	}
	key, err := hex.DecodeString(text)
	if err == nil && len(key) != keyBytes {
		err = fmt.Errorf("it has %d bytes, want %d", len(key), keyBytes)
	}
	return key, err
}

// make generates the key and returns its spec.
func (k *Keys) make(ctx context.Context) (any, error) {
	var key [keyBytes]byte
	_, _ = rand.Read(key[:]) // never fails: it ends the process instead
	text, err := k.sealer.Seal(ctx, hex.EncodeToString(key[:]))
	if err != nil {
		return nil, fmt.Errorf("seal a new key: %w", err)
	}
	return keysSpec{text}, nil
}
