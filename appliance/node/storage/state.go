package storage

import (
	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/storage"
)

// state is the objects that matter here, by ID. It is read-only.
type state struct {
	nodes    map[string]api.Node
	disks    map[string]api.Disk
	founding storage.Founding
}

func stateOf(s *objects.Set) *state {
	return &state{nodes: objects.Map[api.Node](s), disks: objects.Map[api.Disk](s), founding: storage.FoundingOf(s)}
}
