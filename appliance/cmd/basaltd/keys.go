package main

import (
	"context"

	"github.com/basalt-gpu/basalt/appliance/cluster/secrets"
	"github.com/basalt-gpu/basalt/appliance/node/storage"
)

// keys are what the agent opens disks with: those of encrypted volumes, which
// the cluster's ring in the store seals, and that of the pool ceph.
type keys struct {
	*secrets.Keep
	storage *storage.Node
}

// Ceph implements agent.Keys.
func (k keys) Ceph(_ context.Context, user string) ([]byte, error) { return k.storage.Key(user) }
