package network

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/ovn/deploy"
)

// Sweeper finds what lies in OVN and is of no object. It reads the objects and
// OVN's database anew each time: what the leader believes of them proves
// nothing.
type Sweeper struct {
	Store   objects.Watcher
	Cluster string
	Self    deploy.Member
	// Open connects to the northbound database.
	Open func(members []deploy.Member, f deploy.Founding) Rows
}

// Rows are those of the northbound database.
type Rows interface {
	Leaks(ctx context.Context, t sdn.Topology) ([]api.Leak, error)
	Close() error
}

// Leaks of the whole cluster. Errors are *api.Error.
func (w *Sweeper) Leaks(ctx context.Context) ([]api.Leak, error) {
	all, err := objects.Read(ctx, w.Store, Kinds...)
	if err != nil {
		return nil, err
	}
	s := stateOf(all)
	f := s.founding()
	if f.NB == "" {
		return nil, nil // there is no database yet that could hold anything
	}
	rows := w.Open(s.members(w.Self), f)
	defer func() { _ = rows.Close() }() // it was only read
	t, _ := sdn.Intent(s.objects(w.Cluster))
	return rows.Leaks(ctx, t)
}
