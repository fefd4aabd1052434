package appgateway

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/basalt-gpu/basalt/api"
)

// Store is what is needed of the cluster's state.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
	Get(ctx context.Context, kind api.Kind, id string) (api.Object, error)
}

// Sealer wraps secrets with the cluster's ring.
type Sealer interface {
	Seal(ctx context.Context, secret string) (sealed string, err error)
	Open(ctx context.Context, sealed string) (secret string, err error)
}

// keysID is the id of the cluster's only AppAuthority.
const keysID = "appauthority-cluster"

const keyBytes = 32 // of HS256

// keysSpec is what the store keeps: the key in hexadecimal, sealed.
type keysSpec struct {
	Key string `json:"key"`
}

// Keys signs passes with a key that all nodes have. It is made when it is first needed.
// Its methods may be called concurrently.
type Keys struct {
	store  Store
	sealer Sealer

	mu  sync.Mutex // guards what follows; held while it is read
	key []byte
}

// NewKeys returns keys that are not yet read.
func NewKeys(s Store, sealer Sealer) *Keys { return &Keys{store: s, sealer: sealer} }

func (k *Keys) load(ctx context.Context) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.key == nil {
		o, err := k.store.Get(ctx, api.KindAppAuthority, keysID)
		if api.CodeOf(err) == api.CodeNotFound {
			err = k.make(ctx)
			if c := api.CodeOf(err); err == nil || c == api.CodeExists || c == api.CodeConflict {
				continue // read what was written, by whomever
			}
		}
		if err == nil {
			k.key, err = k.read(ctx, o)
		}
		if err != nil {
			return nil, fmt.Errorf("read the key of the app gateway: %w", err)
		}
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
		return nil, err
	}
	key, err := hex.DecodeString(text)
	if err == nil && len(key) != keyBytes {
		err = fmt.Errorf("it has %d bytes, want %d", len(key), keyBytes)
	}
	return key, err
}

// make a new one, unless somebody has.
func (k *Keys) make(ctx context.Context) error {
	var key [keyBytes]byte
	_, _ = rand.Read(key[:]) // never fails: it ends the process instead
	sealed, err := k.sealer.Seal(ctx, hex.EncodeToString(key[:]))
	if err != nil {
		return err
	}
	_, err = k.store.Apply(ctx, api.Batch{Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindAppAuthority, ID: keysID, Name: "cluster", Data: api.Encode(keysSpec{sealed})}}})
	return err
}
