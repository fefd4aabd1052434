package storage

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/sds/ceph/deploy"
)

// Intervals at which the leader queries the monitors: each query costs half a second of
// processor time.
const (
	observeBusy = 2 * time.Second
	observeSick = 10 * time.Second // a warning may persist for weeks
	observeIdle = 20 * time.Second
)

// Leader decides the intended state of Ceph and reports its actual state. Run it while
// this node leads, with a store that accepts writes in that term only.
type Leader struct {
	Cache *watchcache.Cache
	Store Store
	Ceph  Cluster
	Node  Node   // of this machine, which performs the tasks that are done once for all nodes
	Port  uint16 // of the monitors; 0 means deploy.MonPort
	// StorageNetwork reports whether all members of the cluster support Ceph on the
	// storage network. If it is nil they do not.
	StorageNetwork func() bool
	Keys           Keys
	Log            *slog.Logger

	lastError string // the last error that was logged
}

// Keys generates the keys of encrypted OSDs; secrets.KeyStore implements it.
type Keys interface {
	NewOSDKey(ctx context.Context, osd string) (sealed string, err error)
}

// Cluster is the leader's access to Ceph; deploy.Node implements it.
type Cluster interface {
	Survey(ctx context.Context) (deploy.Survey, error)
	Images(ctx context.Context, pool string) (int, error)
}

// Node receives whether this machine leads.
type Node interface{ SetLeads(leads bool) }

// Run decides and reports until ctx ends.
func (l *Leader) Run(ctx context.Context) error {
	l.Node.SetLeads(true)
	defer l.Node.SetLeads(false)
	return watchcache.Run(ctx, l.Cache, Kinds, func(ctx context.Context, s *objects.Set) time.Duration { return l.step(ctx, stateOf(s)) }, append(watchcache.Every(clusterKind), Filters...)...)
}

func (l *Leader) step(ctx context.Context, s *state) time.Duration {
	f, c := s.bootstrap(), s.cluster()
	if c == nil && f.FSID == "" {
		return time.Hour // until something changes
	}
	now, why := l.observe(ctx, s, f)
	next, err := decide(f, now, source{keys: func() (deploy.Keys, error) { return deploy.NewKeys(rand.Reader, time.Now()) }, uuid: uuid.NewString, port: l.Port,
		osdKey:         func(osd string) (string, error) { return l.Keys.NewOSDKey(ctx, osd) },
		storageNetwork: l.StorageNetwork != nil && l.StorageNetwork()})
	if err == nil && !reflect.DeepEqual(next, f) {
		err = l.writeBootstrap(ctx, s, next)
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
		report := api.Command{Op: api.OpReport, Kind: api.KindCephCluster, ID: c.Meta.ID, Expect: c.Meta.Revision, Data: api.Encode(st)}
		if err := l.write(ctx, report); err != nil && api.CodeOf(err) != api.CodeConflict {
			l.trouble("report status of Ceph cluster failed", err)
			return observeBusy
		}
	}
	l.lastError = ""
	switch {
	case f.FSID != "" && (st.Phase != api.CephReady || !f.Quiet("")):
		return observeBusy
	case f.FSID != "" && st.Health != api.CephOK:
		return observeSick
	}
	return observeIdle
}

// Quiet reports whether no disk of the node is being added or removed. An empty node
// means any node.
func (f Bootstrap) Quiet(node api.NodeID) bool {
	for _, o := range f.OSDs {
		if (node == "" || o.Node == node) && (o.Leaving || !o.Taken) {
			return false
		}
	}
	for _, t := range f.Tables {
		if (node == "" || t.Node == node) && (t.Leaving || !t.Taken) {
			return false
		}
	}
	if node == "" && slices.ContainsFunc(f.Pools, func(p ClassPool) bool { return p.Leaving }) {
		return false
	}
	return true
}

func (l *Leader) observe(ctx context.Context, s *state, f Bootstrap) (now observation, why error) {
	now = observation{cluster: s.cluster(), nodes: s.nodes, disks: s.disks}
	if f.FSID == "" {
		return now, nil
	}
	v, err := l.Ceph.Survey(ctx)
	if err != nil {
		return now, fmt.Errorf("survey Ceph: %w", err)
	}
	now.survey = &v
	now.images = l.images(ctx, f, v, now.cluster != nil && now.cluster.Spec.Enabled)
	return now, nil
}

// images counts the images in the pools that may be deleted: all if Ceph is disabled,
// and otherwise those that are not wanted any more.
func (l *Leader) images(ctx context.Context, f Bootstrap, v deploy.Survey, enabled bool) map[string]int {
	images := map[string]int{}
	for _, p := range f.AllPools() {
		if enabled && !p.Leaving {
			continue
		}
		if !slices.ContainsFunc(v.Cluster.Pools, func(o deploy.PoolState) bool { return o.Name == p.Pool.Name }) {
			images[p.Pool.Name] = 0
			continue
		}
		if n, err := l.Ceph.Images(ctx, p.Pool.Name); err == nil {
			images[p.Pool.Name] = n
		}
	}
	return images
}

func (l *Leader) writeBootstrap(ctx context.Context, s *state, f Bootstrap) error {
	err := l.write(ctx, api.Command{Op: api.OpPutSpec, Kind: api.KindCephKeys, ID: cephID, Name: "cluster", Expect: s.ceph[cephID].Meta.Revision, Data: api.Encode(f)})
	if err != nil {
		return fmt.Errorf("write the keys of Ceph: %w", err)
	}
	return nil
}

// trouble logs an error, unless it is the same as the last one.
func (l *Leader) trouble(what string, err error) {
	if err.Error() != l.lastError {
		l.lastError = err.Error()
		l.Log.Warn("storage: "+what, "error", err)
	}
}

// write applies a command. What queries Ceph has limits of its own, which grow on a slow
// node (sds/ceph/command).
func (l *Leader) write(ctx context.Context, c api.Command) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, err := l.Store.Apply(ctx, api.Batch{At: time.Now().UTC(), Commands: []api.Command{c}})
	return err //nolint:wrapcheck // the callers do
}
