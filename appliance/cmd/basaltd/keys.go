package main

import (
	"context"

	"github.com/basalt-gpu/basalt/appliance/cluster/secrets"
	"github.com/basalt-gpu/basalt/appliance/node/storage"
)

// keys implements agent.Keys: the keys of encrypted volumes, which are sealed with the
// cluster's key ring in the store, and the key of the pool ceph.
type keys struct {
	*secrets.Keep
	storage *storage.Node
}

// Ceph implements agent.Keys.
func (k keys) Ceph(_ context.Context, user string) ([]byte, error) { return k.storage.Key(user) }
