package main

import (
	"context"

	"github.com/basalt-gpu/basalt/appliance/cluster/secrets"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
	"github.com/basalt-gpu/basalt/appliance/node/storage"
)

// keys implements agent.Keys: the keys of encrypted volumes, which are sealed with the
// cluster's key ring in the store, and the key of the pool ceph.
type keys struct {
	*secrets.KeyStore
	storage *storage.Node
}

// Ceph implements agent.Keys.
func (k keys) Ceph(_ context.Context, user string) ([]byte, error) { return k.storage.Key(user) }

// sealsStates reports whether all nodes of the cluster can read sealed states of
// machines.
func sealsStates(s *store.Store) bool {
	level, _, err := s.Settled()
	return err == nil && level >= state.MachineStateLevel
}
