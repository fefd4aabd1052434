// Package storage is a node's part in the cluster's storage: it reports the node's
// disks and keeps Ceph's daemons as they should be on those that are given to it
// (Node). Which those are, the leader decides (appliance/controlplane/storage).
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

// Looking again: soon while something is not as it should be.
const (
	lookBusy = time.Second
	lookIdle = 30 * time.Second
	// maxDir is what sockets' paths leave for the node's directory.
	maxDir = 60
)

// Store takes what the node writes.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
}

// Deployer is deploy.Node.
type Deployer interface {
	Round(ctx context.Context, in deploy.Intent, k deploy.Keys, leader bool) (deploy.Round, error)
	Remove(ctx context.Context) error
}

// Access is how this node's machines and driver reach the pool.
type Access struct {
	FSID, Pool, User string
	Monitors         []string
}

// Node tells of this node's disks and keeps Ceph's daemons as they should be on
// it.
type Node struct {
	Cache   *watchcache.Cache
	Store   Store
	Self    api.NodeID
	Name    string
	Address netip.Addr // of a node that is alone
	// Dir is deploy.Node's.
	Dir       string
	Deploy    Deployer
	Look      func(ctx context.Context) ([]Block, error)
	OSDMemory int64 // bytes that an OSD here aims at; 0: 4 GiB
	// Probe says in words what is on a disk that shows nothing; empty: nothing.
	Probe func(ctx context.Context, path string) (string, error)
	// Pool is told when the pool can be used, as often as anything changes;
	// nil: it cannot any more. An error: it is told again.
	Pool     func(ctx context.Context, a *Access) error
	Settings map[string]string // more of ceph.conf, for tests
	Pools    *Pools            // nil: no disk becomes a pool of this node's own
	Log      *slog.Logger

	leads atomic.Bool // what is done once for all nodes is done here

	offered *Access           // what Pool was told
	probed  map[string]probed // by the disk's id

	mu   sync.Mutex // guards what follows
	on   bool       // there is a cluster
	key  string     // of its client
	said string     // what is wrong here; empty: nothing
	runs Daemons
}

// SetLeads sets whether this machine leads.
func (n *Node) SetLeads(leads bool) { n.leads.Store(leads) }

// Run until ctx ends; the daemons run on.
func (n *Node) Run(ctx context.Context) error {
	return watchcache.Run(ctx, n.Cache, Kinds, func(ctx context.Context, s *objects.Set) time.Duration { return n.step(ctx, stateOf(s)) }, storage.Interests...)
}

func (n *Node) step(ctx context.Context, s *state) time.Duration {
	f := s.founding
	found, err := n.Look(ctx)
	if err == nil {
		err = n.probe(ctx, s, f, found)
	}
	if err != nil {
		n.take(f, fmt.Errorf("find disks of this node: %w", err))
		return lookIdle // and nothing is decided on disks that nobody saw
	}
	pools, poolErr := n.ownPools(ctx, s, found)
	at := place{node: n.Self, address: n.Address, dir: n.Dir, blocks: map[string]Block{}, settings: n.Settings}
	for _, b := range found {
		at.blocks[string(b.ID)] = b
	}
	in := intent(f, s.nodes, s.disks, at)
	in.OSDMemoryBytes = n.OSDMemory
	n.noteDaemons(in)
	round, err := n.round(ctx, f, in)
	if ctx.Err() != nil {
		return lookBusy
	}
	err = errors.Join(err, n.offer(ctx, f, in, round), poolErr)
	n.take(f, err)
	if told := n.tell(ctx, s, n.statuses(s, f, in, at, round, pools)); told != nil && ctx.Err() == nil {
		n.Log.Warn("storage: report disks failed", "error", told)
		return lookBusy
	}
	if unsettled(pools) {
		return lookBusy
	}
	if err != nil || len(round.Did) > 0 || f.FSID != "" && (round.Seen.Cluster == nil || !f.Quiet(n.Self) || n.leads.Load() && !f.Quiet("")) {
		return lookBusy
	}
	return lookIdle
}

// ownPools takes a round of this node's own pools.
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

// unsettled reports whether a pool's disk comes or goes.
func unsettled(pools map[string]poolDecision) bool {
	for _, d := range pools {
		if d.state == api.DiskPreparing || d.state == api.DiskDraining {
			return true
		}
	}
	return false
}

// probed is what was on a disk when it was last looked at.
type probed struct {
	holds      string
	generation int64 // of the disk's object
	at         time.Time
}

const probeEvery = time.Minute

// probe the disks that show nothing: lsblk knows what udev has told it, which
// may be nothing at all.
func (n *Node) probe(ctx context.Context, s *state, f storage.Founding, found []Block) error {
	seen := map[string]probed{}
	for i := range found {
		b := &found[i]
		if f.OSD(b.ID) != nil || b.Held != "" || b.Holds != "" {
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

// round takes what is of an older cluster away, and one round of this one.
func (n *Node) round(ctx context.Context, f storage.Founding, in deploy.Intent) (deploy.Round, error) {
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
	return r, err
}

// clear removes what this node has of a cluster that was retired; of any other
// that is not the present one it only says that it is there.
func (n *Node) clear(ctx context.Context, f storage.Founding) error {
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
			return err
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

// offer the pool, once it can be used. It stays offered while the monitors are
// away: whoever uses it then gets an error that says so.
func (n *Node) offer(ctx context.Context, f storage.Founding, in deploy.Intent, r deploy.Round) error {
	var a *Access
	if c := r.Seen.Cluster; f.FSID != "" && !f.Dismantle {
		made := c != nil && slices.ContainsFunc(c.Pools, func(p deploy.PoolState) bool { return p.Name == storage.Pool && p.Enabled }) &&
			slices.ContainsFunc(c.OSDs, func(o deploy.OSDState) bool { return o.Up && o.In })
		if made || n.offered != nil {
			a = &Access{FSID: f.FSID, Pool: storage.Pool, User: deploy.Client, Monitors: in.Monitors()}
		}
	}
	if n.Pool == nil || reflect.DeepEqual(a, n.offered) {
		return nil
	}
	n.mu.Lock()
	n.key = f.Keys.Client
	n.mu.Unlock()
	if err := n.Pool(ctx, a); err != nil {
		return fmt.Errorf("open pool ceph: %w", err)
	}
	n.offered = a
	return nil
}

// take keeps what the node's status says, and logs what is new in it.
func (n *Node) take(f storage.Founding, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.on, n.key = f.FSID != "", f.Keys.Client
	words := ""
	if err != nil {
		words = storage.Reason(err.Error())
	}
	if words == n.said {
		return
	}
	n.said = words
	if words != "" {
		n.Log.Warn("storage: " + words)
	} else {
		n.Log.Info("storage: working")
	}
}

// Works reports whether Ceph is switched on, and what keeps it from working here.
func (n *Node) Works() (on bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.said != "" {
		err = api.Errorf(api.CodeUnavailable, "%s", n.said)
	}
	return n.on, err
}

// Key of the user, decoded.
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

// statuses of all disks that are here or were.
func (n *Node) statuses(s *state, f storage.Founding, in deploy.Intent, at place, r deploy.Round, pools map[string]poolDecision) map[string]api.DiskStatus {
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
		all[id] = diskStatus(n.Self, v)
	}
	return all
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

// tell the cluster what has changed. A disk that is gone, and that nobody asked
// for anything, is forgotten.
func (n *Node) tell(ctx context.Context, s *state, all map[string]api.DiskStatus) error {
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(all)) {
		st := all[id]
		d, known := s.disks[id]
		cmd := api.Command{Op: api.OpReport, Kind: api.KindDisk, ID: id, Expect: d.Meta.Revision, Data: api.Encode(st)}
		switch {
		case known && st.State == api.DiskFailed && d.Spec.Use == api.DiskUnused && s.founding.OSD(api.DiskID(id)) == nil:
			cmd = api.Command{Op: api.OpDelete, Kind: api.KindDisk, ID: id, Expect: d.Meta.Revision}
		case known && reflect.DeepEqual(d.Status, st):
			continue
		case !known:
			cmd.Name = n.diskName(s, id, st)
		}
		_, err := n.Store.Apply(ctx, api.Batch{At: time.Now().UTC(), Commands: []api.Command{cmd}})
		if api.CodeOf(err) == api.CodeConflict { // it has changed meanwhile: the next look sees to what
			err = nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// diskName of a disk that is new: its node's, and what is printed on it.
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
