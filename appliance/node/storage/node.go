// Package storage is a node's part in the cluster's storage: it reports the node's
// disks, and deploys Ceph's daemons on those that are assigned to Ceph (Node). The
// leader decides which those are (appliance/controlplane/storage).
package storage

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/storage"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/sds/ceph/deploy"
)

// Intervals of steps: busyInterval while something is not as wanted.
const (
	busyInterval = time.Second
	idleInterval = 30 * time.Second
	// maxDir is the longest path of the node's directory that leaves enough for
	// sockets' paths.
	maxDir = 60
)

// Store writes the node's objects.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
}

// Deployer is implemented by deploy.Node.
type Deployer interface {
	Round(ctx context.Context, in deploy.Intent, k deploy.Keys, leader bool) (deploy.Round, error)
	Remove(ctx context.Context) error
}

// Access is what this node's machines and driver need to access the pool.
type Access struct {
	FSID, Pool, User string
	Monitors         []string
}

// Node reports this node's disks and deploys Ceph's daemons on it.
type Node struct {
	Cache   *watchcache.Cache
	Store   Store
	Self    api.NodeID
	Name    string
	Address netip.Addr // address of a node that is alone
	// StorageAddress returns the node's address on the storage network, or the zero
	// Addr. If it is nil, the node has none.
	StorageAddress func() netip.Addr
	// Dir is the Dir of deploy.Node.
	Dir       string
	Deploy    Deployer
	ListDisks func(ctx context.Context) ([]Block, error)
	OSDMemory int64 // osd_memory_target in bytes; 4 GiB if 0
	// Probe describes what is on a disk for which lsblk shows nothing; it returns
	// "" if it is blank.
	Probe func(ctx context.Context, path string) (string, error)
	// Pool is called when a pool can be used, and when its access changes; with
	// nil when it cannot be used any more. After an error it is called again. The name
	// is that of the storage pool.
	Pool     func(ctx context.Context, name string, a *Access) error
	Settings map[string]string // additional settings for ceph.conf, for tests
	Keys     Keys
	Pools    *Pools // nil if disks cannot become pools of this node's own
	Log      *slog.Logger

	leads atomic.Bool // this node performs what is done once for all nodes

	offered map[string]*Access // last access given to Pool, by name
	probed  map[string]probed  // by disk ID

	mu      sync.Mutex // guards the following fields
	on      bool       // there is a cluster
	key     string     // of its client
	problem string     // what is wrong on this node; empty if nothing
	runs    Daemons
}

// SetLeads sets whether this node leads.
func (n *Node) SetLeads(leads bool) { n.leads.Store(leads) }

// Run deploys until ctx ends; the daemons keep running.
func (n *Node) Run(ctx context.Context) error {
	return watchcache.Run(ctx, n.Cache, Kinds, func(ctx context.Context, s *objects.Set) time.Duration { return n.step(ctx, stateOf(s)) }, storage.Filters...)
}

func (n *Node) step(ctx context.Context, s *state) time.Duration {
	f := s.bootstrap
	found, err := n.ListDisks(ctx)
	if err == nil {
		err = n.probe(ctx, s, f, found)
	}
	if err != nil {
		n.setState(f, fmt.Errorf("find disks of this node: %w", err))
		return idleInterval // without the disks nothing can be decided
	}
	pools, poolErr := n.ownPools(ctx, s, found)
	at := place{node: n.Self, address: n.Address, dir: n.Dir, blocks: map[string]Block{}, settings: n.Settings}
	if n.StorageAddress != nil {
		at.storage = n.StorageAddress()
	}
	if len(f.Addresses) > 0 && !at.storage.IsValid() {
		// What runs goes on: the link may only be down.
		n.setState(f, errors.New("this node has no address on a link with role storage, which Ceph uses in this cluster: declare one (docs/node-network.md)"))
		return idleInterval
	}
	for _, b := range found {
		at.blocks[string(b.ID)] = b
	}
	var keyErr error
	at.keys, keyErr = n.keysOf(ctx, f)
	in := intent(f, s.nodes, s.disks, at)
	in.OSDMemoryBytes = n.OSDMemory
	n.noteDaemons(in)
	round, err := n.round(ctx, f, in)
	if ctx.Err() != nil {
		return busyInterval
	}
	err = errors.Join(err, keyErr, n.offer(ctx, f, in, round), poolErr)
	n.setState(f, err)
	if writeErr := n.writeStatuses(ctx, s, n.statuses(s, f, in, at, round, pools)); writeErr != nil && ctx.Err() == nil {
		n.Log.Warn("storage: report disks failed", "error", writeErr)
		return busyInterval
	}
	if unsettled(pools) {
		return busyInterval
	}
	if err != nil || len(round.Did) > 0 || f.FSID != "" && (round.Seen.Cluster == nil || !f.Quiet(n.Self) || n.leads.Load() && !f.Quiet("")) {
		return busyInterval
	}
	return idleInterval
}

// ownPools performs a round of this node's own pools.
func (n *Node) ownPools(ctx context.Context, s *state, found []Block) (map[string]poolDecision, error) {
	if n.Pools == nil {
		return nil, nil
	}
	in := poolInput{disks: s.disks, blocks: map[string]Block{}, volumes: s.poolVolumes(n.Self)}
	for _, b := range found {
		in.blocks[string(b.ID)] = b
	}
	return n.Pools.round(ctx, in)
}

// unsettled reports whether a pool's disk is being prepared or released.
func unsettled(pools map[string]poolDecision) bool {
	for _, d := range pools {
		if d.state == api.DiskPreparing || d.state == api.DiskDraining {
			return true
		}
	}
	return false
}

// probed is the result of the last probe of a disk.
type probed struct {
	holds      string
	generation int64 // of the disk's object
	at         time.Time
}

const probeEvery = time.Minute

// probe probes the disks for which lsblk shows nothing: it only knows what udev has
// found, which may be nothing at all.
func (n *Node) probe(ctx context.Context, s *state, f storage.Bootstrap, found []Block) error {
	seen := map[string]probed{}
	for i := range found {
		b := &found[i]
		if f.OSD(b.ID) != nil || f.Table(b.ID) != nil || b.Held != "" || b.Holds != "" {
			continue
		}
		p, ok := n.probed[string(b.ID)]
		if g := s.disks[string(b.ID)].Meta.Generation; !ok || p.generation != g || time.Since(p.at) > probeEvery {
			holds, err := n.Probe(ctx, b.Path)
			if err != nil {
				return err
			}
			p = probed{holds, g, time.Now()}
		}
		seen[string(b.ID)], b.Holds = p, p.holds
	}
	n.probed = seen
	return nil
}

// round removes what is left of an older cluster, and performs one round of the
// current one.
func (n *Node) round(ctx context.Context, f storage.Bootstrap, in deploy.Intent) (deploy.Round, error) {
	if err := n.clear(ctx, f); err != nil || f.FSID == "" {
		return deploy.Round{}, err
	}
	if len(n.Dir) > maxDir {
		return deploy.Round{}, fmt.Errorf("path %s is too long for Ceph's sockets: %d bytes, want at most %d", n.Dir, len(n.Dir), maxDir)
	}
	r, err := n.Deploy.Round(ctx, in, f.Keys, n.leads.Load())
	for _, a := range r.Did {
		if a.Do != deploy.Refuse && r.Failed[a.Name] == nil {
			n.Log.Info("storage: " + a.String())
		}
	}
	if err != nil {
		return r, fmt.Errorf("deploy Ceph: %w", err)
	}
	return r, nil
}

// clear removes what this node has of a retired cluster; for any other that is not
// the current one it returns an error.
func (n *Node) clear(ctx context.Context, f storage.Bootstrap) error {
	path := filepath.Join(n.Dir, "generation.json")
	var have storage.Incarnation
	raw, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(raw, &have); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	switch {
	case have == f.Incarnation() && f.FSID != "":
		return nil
	case have != (storage.Incarnation{}) && !slices.Contains(f.Retired, have):
		return fmt.Errorf("%s belongs to an unknown storage cluster (%s, %d): it is left unchanged", n.Dir, have.FSID, have.Generation)
	case have != (storage.Incarnation{}):
		if err := n.Deploy.Remove(ctx); err != nil {
			return fmt.Errorf("remove this node's part of storage cluster %s: %w", have.FSID, err)
		}
		n.Log.Info("storage: removed this node's part of the storage cluster", "fsid", have.FSID)
	}
	if f.FSID == "" {
		return nil
	}
	if err := os.MkdirAll(n.Dir, 0o700); err != nil {
		return err
	}
	return atomicfile.WriteFile(path, api.Encode(f.Incarnation()), 0o600)
}

// offer gives the pools to Pool, once they can be used. They stay open while the
// monitors are unreachable: their users then get errors.
func (n *Node) offer(ctx context.Context, f storage.Bootstrap, in deploy.Intent, r deploy.Round) error {
	if n.Pool == nil {
		return nil
	}
	usable := map[string]*Access{}
	for name := range n.offered {
		usable[name] = nil
	}
	for _, p := range f.AllPools() {
		if f.FSID != "" && !f.Dismantle && !p.Drop && (n.offered[p.Name] != nil || made(r.Seen.Cluster, p.Pool)) {
			usable[p.Name] = &Access{FSID: f.FSID, Pool: p.Pool.Name, User: deploy.Client, Monitors: in.Monitors()}
		}
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(usable)) {
		errs = append(errs, n.offerPool(ctx, f, name, usable[name]))
	}
	return errors.Join(errs...)
}

// made reports whether the pool exists and has a disk to store data on.
func made(c *deploy.Cluster, p deploy.Pool) bool {
	return c != nil && slices.ContainsFunc(c.Pools, func(o deploy.PoolState) bool { return o.Name == p.Name && o.Enabled }) &&
		slices.ContainsFunc(c.OSDs, func(o deploy.OSDState) bool { return o.Up && o.In && (p.Class == "" || o.Class == p.Class) })
}

// offerPool gives one pool to Pool, if its access has changed.
func (n *Node) offerPool(ctx context.Context, f storage.Bootstrap, name string, a *Access) error {
	if reflect.DeepEqual(a, n.offered[name]) {
		return nil
	}
	n.mu.Lock()
	n.key = f.Keys.Client
	n.mu.Unlock()
	if err := n.Pool(ctx, name, a); err != nil {
		return fmt.Errorf("open pool %s: %w", name, err)
	}
	if n.offered == nil {
		n.offered = map[string]*Access{}
	}
	if n.offered[name] = a; a == nil {
		delete(n.offered, name)
	}
	return nil
}

// setState stores the node's state, and logs changes of what is wrong.
func (n *Node) setState(f storage.Bootstrap, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.on, n.key = f.FSID != "", f.Keys.Client
	words := ""
	if err != nil {
		words = storage.Reason(err.Error())
	}
	if words == n.problem {
		return
	}
	n.problem = words
	if words != "" {
		n.Log.Warn("storage: " + words)
	} else {
		n.Log.Info("storage: working")
	}
}

// Works reports whether Ceph is enabled, and returns what keeps it from working on
// this node.
func (n *Node) Works() (on bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.problem != "" {
		err = api.Errorf(api.CodeUnavailable, "%s", n.problem)
	}
	return n.on, err
}

// Key returns the decoded key of the Ceph user.
func (n *Node) Key(user string) ([]byte, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.key == "" || user != deploy.Client {
		return nil, api.Errorf(api.CodeUnavailable, "this node has no key of a Ceph cluster for %s", user)
	}
	key, err := base64.StdEncoding.DecodeString(n.key)
	if err != nil {
		return nil, fmt.Errorf("decode Ceph key of %s: %w", user, err)
	}
	return key, nil
}

// statuses returns the statuses of all disks that are, or were, on this node.
func (n *Node) statuses(s *state, f storage.Bootstrap, in deploy.Intent, at place, r deploy.Round, pools map[string]poolDecision) map[string]api.DiskStatus {
	ids := slices.Collect(maps.Keys(at.blocks))
	for id, d := range s.disks {
		if _, here := at.blocks[id]; !here && d.Status.Node == n.Self {
			ids = append(ids, id)
		}
	}
	all := map[string]api.DiskStatus{}
	for _, id := range ids {
		v := diskView{disk: s.disks[id], osd: f.OSD(api.DiskID(id)), round: r, off: f.FSID == "", begun: !f.Exists}
		if b, ok := at.blocks[id]; ok {
			v.block = &b
		}
		if d, ok := pools[id]; ok {
			v.pool = &d
		}
		if v.osd != nil {
			v.found = foundOf(in, r.Seen.Disks, v.osd.UUID)
		}
		if v.table = f.Table(api.DiskID(id)); v.table != nil {
			v.parted = partedOf(in, r.Seen.Tables, v.table.UUID)
		}
		v.dbReady = databaseReady(s.disks, v.disk)
		all[id] = diskStatus(n.Self, v)
	}
	return all
}

// databaseReady reports whether the disk that a disk's database is to be stored on is
// used for databases.
func databaseReady(disks map[string]api.Disk, d api.Disk) bool {
	return d.Spec.DBDisk == "" || disks[string(d.Spec.DBDisk)].Spec.Use == api.DiskCephDB
}

func partedOf(in deploy.Intent, all []deploy.FoundTable, uuid string) *deploy.FoundTable {
	for _, t := range in.Tables {
		for i := range all {
			if t.UUID == uuid && all[i].Path == t.Path {
				return &all[i]
			}
		}
	}
	return nil
}

func foundOf(in deploy.Intent, all []deploy.Found, uuid string) *deploy.Found {
	for _, d := range in.Disks {
		if d.UUID != uuid {
			continue
		}
		for i := range all {
			if all[i].Path == d.Path {
				return &all[i]
			}
		}
	}
	return nil
}

// writeStatuses writes changed statuses to the store. A missing disk without a use is
// deleted.
func (n *Node) writeStatuses(ctx context.Context, s *state, all map[string]api.DiskStatus) error {
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(all)) {
		st := all[id]
		d, known := s.disks[id]
		cmd := api.Command{Op: api.OpReport, Kind: api.KindDisk, ID: id, Expect: d.Meta.Revision, Data: api.Encode(st)}
		switch {
		case known && st.State == api.DiskFailed && d.Spec.Use == api.DiskUnused && s.bootstrap.OSD(api.DiskID(id)) == nil && s.bootstrap.Table(api.DiskID(id)) == nil:
			cmd = api.Command{Op: api.OpDelete, Kind: api.KindDisk, ID: id, Expect: d.Meta.Revision}
		case known && reflect.DeepEqual(d.Status, st):
			continue
		case !known:
			cmd.Name = n.diskName(s, id, st)
		}
		_, err := n.Store.Apply(ctx, api.Batch{At: time.Now().UTC(), Commands: []api.Command{cmd}})
		if api.CodeOf(err) == api.CodeConflict { // it was changed meanwhile, which the next step handles
			err = nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// diskName returns the name of a new disk: the node's name, and the serial number
// or another label.
func (n *Node) diskName(s *state, id string, st api.DiskStatus) string {
	label := st.Serial
	if label == "" {
		label = filepath.Base(strings.TrimPrefix(st.Model, "file "))
		if !strings.HasPrefix(st.Model, "file ") {
			label = filepath.Base(st.Path)
		}
	}
	_, hash, _ := strings.Cut(id, "-")
	name := cleanName(n.Name + "-" + label)
	if api.ValidateName(name) != nil {
		name = cleanName(n.Name + "-" + hash)
	}
	for _, d := range s.disks {
		if d.Meta.Name == name {
			return cleanName(n.Name[:min(len(n.Name), 40)] + "-" + hash)
		}
	}
	return name
}

func cleanName(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, s)
	return strings.Trim(s[:min(len(s), 63)], "-")
}
