package main

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/outbound"
	"github.com/basalt-gpu/basalt/appliance/controlplane/storage"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
	"github.com/basalt-gpu/basalt/appliance/node/agent"
	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
	nodenetwork "github.com/basalt-gpu/basalt/appliance/node/network"
	nodestorage "github.com/basalt-gpu/basalt/appliance/node/storage"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/ceph"
	"github.com/basalt-gpu/basalt/sds/ceph/deploy"
	"github.com/basalt-gpu/basalt/sds/local"
)

// nodeStorage is the node's part of the cluster's storage: its disks, and Ceph if the cluster has it.
type nodeStorage struct {
	node    *nodestorage.Node
	deploy  deploy.Node
	agent   *agent.Agent
	staging string
	urls    outbound.Options // for fetching images
	log     interface{ Warn(msg string, args ...any) }

	mu      sync.Mutex              // guards drivers
	drivers map[string]*ceph.Driver // of Ceph's pools that are open, by name
}

// cephPrograms are the programs that a node needs to take part in Ceph.
var cephPrograms = []string{"ceph", "ceph-mon", "ceph-mgr", "ceph-osd", "ceph-bluestore-tool", "rbd", "rados"}

// openStorage prepares the storage; nothing is started yet. Ceph's daemons use the network of
// the nodes' main path.
func (n *node) openStorage(c config, id api.NodeID) error {
	self, err := nodenetwork.MemberOf(id, peerHost(c))
	if err != nil {
		return fmt.Errorf("--peer-listen: %w", err)
	}
	daemons, _, err := daemonsOf(c)
	if err != nil {
		return err
	}
	dir := filepath.Join(c.data, "ceph")
	alone := netip.Addr{}
	if n.cluster == nil {
		alone = self.Address
	}
	d := &nodeStorage{drivers: map[string]*ceph.Driver{}, staging: filepath.Join(c.data, "ceph-staging"), urls: n.imageURLs(), log: n.log}
	d.deploy = deploy.Node{ID: string(id), Dir: dir, Address: self.Address, Daemons: daemons}
	d.node = &nodestorage.Node{
		Cache: n.cache, Store: n.store, Self: id, Name: c.nodeName, Address: alone, StorageAddress: func() netip.Addr { return declaredAddress(c, hostnet.Storage) }, Dir: dir, Deploy: d.deploy, Probe: nodestorage.Probe, Pool: d.pool, Keys: n.sealed, Log: n.log, OSDMemory: osdMemory(),
		ListDisks: func(ctx context.Context) ([]nodestorage.Block, error) { return nodestorage.Disks(ctx, id, c.disks) },
	}
	if d.node.Pools, err = d.diskPools(c, id); err != nil {
		return err
	}
	n.storage = d
	return nil
}

// diskPools manages disks as pools of this node alone.
func (d *nodeStorage) diskPools(c config, id api.NodeID) (*nodestorage.Pools, error) {
	dir, err := filepath.Abs(filepath.Join(c.data, "pools"))
	if err != nil {
		return nil, err
	}
	_, err = os.Stat("/run/systemd/system") // as sd_booted(3) checks
	return &nodestorage.Pools{
		Dir: dir, Self: id, Systemd: err == nil, Log: d.node.Log,
		Open: func(dir string, present func() error) (sds.Driver, error) {
			return local.Open(local.Options{Dir: dir, Present: present, URLs: d.urls})
		},
		Set: func(name string, driver sds.Driver) { d.agent.SetPool(name, driver) },
	}, nil
}

// lacksCeph returns why this node cannot take part in Ceph, or "".
func lacksCeph() string {
	for _, p := range cephPrograms {
		if _, err := exec.LookPath(p); err != nil {
			return "this node lacks a program of Ceph: " + p + " is not installed"
		}
	}
	return ""
}

// driver returns the driver of one of Ceph's pools, or nil.
func (d *nodeStorage) driver(name string) *ceph.Driver {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.drivers[name]
}

func (d *nodeStorage) setDriver(name string, driver *ceph.Driver) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.drivers[name] = driver; driver == nil {
		delete(d.drivers, name)
	}
}

// pool adds one of Ceph's pools to the agent, or removes it.
func (d *nodeStorage) pool(ctx context.Context, name string, a *nodestorage.Access) error {
	if a == nil {
		d.setDriver(name, nil)
		d.agent.SetPool(name, nil)
		return nil
	}
	if driver := d.driver(name); driver != nil {
		driver.SetMonitors(a.Monitors) // a second driver would treat this one's work as that of a dead process
		return nil
	}
	driver, err := ceph.Open(ctx, ceph.Options{
		FSID: a.FSID, Conf: d.deploy.Conf(), User: a.User, Pool: a.Pool, Monitors: a.Monitors,
		Node: d.node.Self, Staging: d.stagingOf(name), URLs: d.urls,
	})
	if err != nil {
		return fmt.Errorf("open Ceph pool %s: %w", a.Pool, err)
	}
	d.setDriver(name, driver)
	d.agent.SetPool(name, driver)
	return nil
}

// stagingOf returns the staging directory of a pool: its driver clears it when it is
// opened. That of the pool ceph has no suffix.
func (d *nodeStorage) stagingOf(name string) string {
	return d.staging + strings.TrimPrefix(name, api.PoolCeph)
}

// sweepEvery is the interval of removing what dead processes have left in the pool.
const sweepEvery = time.Hour

func (d *nodeStorage) sweep(ctx context.Context) error {
	t := time.NewTicker(sweepEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
		d.mu.Lock()
		drivers := maps.Clone(d.drivers)
		d.mu.Unlock()
		for name, driver := range drivers {
			if err := driver.Sweep(ctx); err != nil && ctx.Err() == nil {
				d.log.Warn("storage: remove leftovers of dead processes failed", "pool", name, "error", err)
			}
		}
	}
}

// run returns the tasks that run on every node.
func (d *nodeStorage) run() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{"storage": d.node.Run, "storage sweep": d.sweep}
}

// lead manages the cluster's storage while this node is the leader in the term.
func (d *nodeStorage) lead(ctx context.Context, n *node, in uint64) {
	l := &storage.Leader{Cache: n.cache, Store: term{n.store, in}, Ceph: d.deploy, Node: d.node, Log: n.log, Keys: n.sealed, StorageNetwork: func() bool {
		level, _, err := n.store.Settled()
		return err == nil && level >= state.StorageNetworkLevel
	}}
	_ = l.Run(ctx) // ends with the term
}
