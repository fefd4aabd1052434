package storage

import (
	"context"
	"crypto/rand"
	"log/slog"
	"reflect"
	"time"

	"github.com/google/uuid"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/sds/ceph/deploy"
)

// How often the leader asks the monitors: each question is half a second of a
// processor.
const (
	observeBusy = 2 * time.Second
	observeSick = 10 * time.Second // a warning may stay for weeks
	observeIdle = 20 * time.Second
)

// Leader decides what Ceph is to be, and says how it is. Run it while this node
// leads, with a store whose writes hold in that term only.
type Leader struct {
	Cache *watchcache.Cache
	Store Store
	Ceph  Cluster
	Node  Node   // of this machine: it does what is done once for all nodes
	Port  uint16 // of monitors; 0: deploy.MonPort
	Log   *slog.Logger

	said string // the last trouble in the log
}

// Cluster is what the leader asks: deploy.Node.
type Cluster interface {
	Survey(ctx context.Context) (deploy.Survey, error)
	Images(ctx context.Context, pool string) (int, error)
}

// Node is told whether this machine leads.
type Node interface{ SetLeads(leads bool) }

// Run until ctx ends.
func (l *Leader) Run(ctx context.Context) error {
	l.Node.SetLeads(true)
	defer l.Node.SetLeads(false)
	return watchcache.Run(ctx, l.Cache, Kinds, func(ctx context.Context, s *objects.Set) time.Duration { return l.step(ctx, stateOf(s)) }, append(watchcache.Every(clusterKind), Interests...)...)
}

func (l *Leader) step(ctx context.Context, s *state) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	f, c := s.founding(), s.cluster()
	if c == nil && f.FSID == "" {
		return time.Hour // until something changes
	}
	now, why := l.look(ctx, s, f)
	next, err := decide(f, now, source{keys: func() (deploy.Keys, error) { return deploy.NewKeys(rand.Reader, time.Now()) }, uuid: uuid.NewString, port: l.Port})
	if err == nil && !reflect.DeepEqual(next, f) {
		err = l.put(ctx, s, next)
		f = next
	}
	if err != nil {
		l.trouble("write decision about Ceph failed", err)
		return observeBusy
	}
	if c == nil {
		return observeBusy
	}
	st := explain(f, now, why)
	if !reflect.DeepEqual(st, c.Status) {
		if _, err := l.Store.Apply(ctx, api.Batch{At: time.Now().UTC(), Commands: []api.Command{
			{Op: api.OpReport, Kind: api.KindCephCluster, ID: c.Meta.ID, Expect: c.Meta.Revision, Data: api.Encode(st)}}}); err != nil && api.CodeOf(err) != api.CodeConflict {
			l.trouble("report status of Ceph cluster failed", err)
			return observeBusy
		}
	}
	l.said = ""
	switch {
	case f.FSID != "" && (st.Phase != api.CephReady || !f.Quiet("")):
		return observeBusy
	case f.FSID != "" && st.Health != api.CephOK:
		return observeSick
	}
	return observeIdle
}

// Quiet reports whether no disk of the node comes or goes; empty: of any node.
func (f Founding) Quiet(node api.NodeID) bool {
	for _, o := range f.OSDs {
		if (node == "" || o.Node == node) && (o.Leaving || !o.Taken) {
			return false
		}
	}
	return true
}

func (l *Leader) look(ctx context.Context, s *state, f Founding) (now seen, why error) {
	now = seen{cluster: s.cluster(), nodes: s.nodes, disks: s.disks, images: -1}
	if f.FSID == "" {
		return now, nil
	}
	v, err := l.Ceph.Survey(ctx)
	if err != nil {
		return now, err
	}
	now.survey = &v
	if now.cluster != nil && now.cluster.Spec.Enabled {
		return now, nil
	}
	now.images = 0
	for _, p := range v.Cluster.Pools {
		if p.Name != Pool {
			continue
		}
		if now.images, err = l.Ceph.Images(ctx, Pool); err != nil {
			now.images = -1
		}
	}
	return now, nil
}

func (l *Leader) put(ctx context.Context, s *state, f Founding) error {
	_, err := l.Store.Apply(ctx, api.Batch{At: time.Now().UTC(), Commands: []api.Command{{
		Op: api.OpPutSpec, Kind: api.KindCephKeys, ID: cephID, Name: "cluster", Expect: s.ceph[cephID].Meta.Revision, Data: api.Encode(f)}}})
	return err
}

// trouble goes into the log once.
func (l *Leader) trouble(what string, err error) {
	if err.Error() != l.said {
		l.said = err.Error()
		l.Log.Warn("storage: "+what, "error", err)
	}
}
