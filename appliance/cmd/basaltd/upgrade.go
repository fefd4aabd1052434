package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/lease"
	"github.com/basalt-gpu/basalt/appliance/cluster/transport"
	"github.com/basalt-gpu/basalt/appliance/controlplane/upgrade"
	"github.com/basalt-gpu/basalt/appliance/node/agent"
	nodeupgrade "github.com/basalt-gpu/basalt/appliance/node/upgrade"
)

// upgrades is this node's part in upgrades of the cluster, including that of the leader.
type upgrades struct {
	node  *node
	agent *nodeupgrade.Agent
	log   *slog.Logger
}

// pathPackage is the call by which members fetch packages from each other.
const pathPackage = "/upgrade/packages/"

// openUpgrades prepares the upgrades and serves this node's packages to the other members;
// nothing is started yet.
func (n *node) openUpgrades(c config, id api.NodeID, ao *agent.Options) {
	a := &nodeupgrade.Agent{
		Cache: n.cache, Self: id, Version: version, Packages: nodeupgrade.Packages{Dir: filepath.Join(c.data, "packages")},
		Peers: agentRPC{n.cluster.client}, Program: c.upgradeProgram, Socket: filepath.Join(c.run, "api.sock"), Dir: filepath.Join(c.data, "upgrade"),
		Told: func() { n.agent.ReportSoon() }, Log: n.log,
	}
	n.upgrade = &upgrades{node: n, agent: a, log: n.log}
	ao.Upgrade = a.Status
	n.cluster.server.Handle("GET "+pathPackage+"{sum}", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, err := a.Packages.Open(r.PathValue("sum"))
		if err != nil {
			transport.WriteError(w, err)
			return
		}
		defer f.Close()
		w.Header().Set("Content-Type", "application/octet-stream")
		if _, err := io.Copy(w, f); err != nil {
			panic(http.ErrAbortHandler) // abort, so that a partial package is not taken for a complete one
		}
	}))
}

// Nodes implements nodeupgrade.Peers.
func (n agentRPC) Nodes() []api.NodeID { return n.client.AddressBook().Nodes() }

// FetchPackage implements nodeupgrade.Peers.
func (n agentRPC) FetchPackage(ctx context.Context, from api.NodeID, sha256 string) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, pathPackage+sha256, nil)
	if err != nil {
		return nil, err
	}
	resp, err := n.client.Do(ctx, from, r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	e := new(api.Error)
	if json.NewDecoder(io.LimitReader(resp.Body, 1<<16)).Decode(e) == nil && e.Code != "" {
		return nil, e
	}
	return nil, fmt.Errorf("node %s responded with status %s for package %s", from, resp.Status, sha256)
}

// lead executes an upgrade while this node is the leader in the term.
func (u *upgrades) lead(ctx context.Context, in uint64) {
	l := &upgrade.Leader{Cache: u.node.cache, Store: term{u.node.store, in}, Cluster: u, Log: u.log}
	_ = l.Run(ctx) // ends with the term
}

// caughtUpLimit is the limit for a node to have everything that the leader had when the call
// began.
const caughtUpLimit = 3 * time.Second

// Nodes implements upgrade.Cluster.
func (u *upgrades) Nodes(ctx context.Context) ([]upgrade.Node, error) {
	cl := u.node.cluster
	objects, err := api.All[api.Node](ctx, u.node.store, api.ListQuery{Kind: api.KindNode})
	if err != nil {
		return nil, err
	}
	members, err := cl.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	heard := map[api.NodeID]bool{}
	for _, m := range members.Members {
		heard[m.Node] = m.HeardAt != nil && time.Since(*m.HeardAt) < lease.Silence
	}
	votes := map[string]bool{}
	for _, m := range u.node.store.Members() {
		votes[m.ID] = m.Voter
	}
	out := make([]upgrade.Node, len(objects))
	var wg sync.WaitGroup
	for i, o := range objects {
		id := api.NodeID(o.Meta.ID)
		out[i] = upgrade.Node{Node: o, Leads: id == cl.self.Node, Reachable: heard[id]}
		if o.Assignment.Voter && !votes[o.Meta.ID] {
			out[i].Behind = "it is to become a voter, but is not yet"
		}
		if id == cl.self.Node || !heard[id] || out[i].Behind != "" {
			continue
		}
		wg.Go(func() {
			quick, cancel := context.WithTimeout(ctx, caughtUpLimit)
			defer cancel()
			if err := cl.caughtUp(quick, id); err != nil {
				out[i].Behind = err.Error()
			}
		})
	}
	wg.Wait()
	return out, nil
}

// Leaving implements upgrade.Cluster.
func (u *upgrades) Leaving(ctx context.Context) (map[api.NodeID]bool, error) {
	instances, err := api.All[api.Instance](ctx, u.node.store, api.ListQuery{Kind: api.KindInstance})
	if err != nil {
		return nil, err
	}
	migrations, err := api.All[api.Migration](ctx, u.node.store, api.ListQuery{Kind: api.KindMigration})
	if err != nil {
		return nil, err
	}
	moving := map[api.InstanceID]bool{}
	for _, m := range migrations {
		if !m.Assignment.Phase.Ended() {
			moving[m.Spec.Instance] = true
		}
	}
	leaving := map[api.NodeID]bool{}
	for _, i := range instances {
		if i.Assignment.Release || i.Assignment.MigrateTo != "" || moving[api.InstanceID(i.Meta.ID)] {
			leaving[i.Assignment.Node] = true
		}
	}
	return leaving, nil
}

// HandOver implements upgrade.Cluster.
func (u *upgrades) HandOver(ctx context.Context) error { return u.node.store.TransferLeadership(ctx) }
