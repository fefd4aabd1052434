package network

import (
	"context"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/ovn/deploy"
)

// Sweeper finds rows in OVN that belong to no object. It reads the objects and OVN's
// database each time, and does not rely on the leader's view of them.
type Sweeper struct {
	Store   objects.Watcher
	Cluster string
	Self    deploy.Member
	// Open connects to the northbound database.
	Open func(members []deploy.Member, f deploy.Bootstrap) Rows
}

// Rows gives access to the rows of the northbound database.
type Rows interface {
	Leaks(ctx context.Context, t sdn.Topology) ([]api.Leak, error)
	Close() error
}

// Leaks returns the leaked rows of the whole cluster.
func (w *Sweeper) Leaks(ctx context.Context) ([]api.Leak, error) {
	all, err := objects.Read(ctx, w.Store, Kinds...)
	if err != nil {
		return nil, fmt.Errorf("read the objects of the network: %w", err)
	}
	s := stateOf(all)
	f := s.bootstrap()
	if f.NB == "" {
		return nil, nil // there is no database yet
	}
	rows := w.Open(s.members(w.Self), f)
	defer func() { _ = rows.Close() }() // only read, so errors do not matter
	t, _ := sdn.Intent(s.objects(w.Cluster))
	leaks, err := rows.Leaks(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("find leaked rows in OVN: %w", err)
	}
	return leaks, nil
}
