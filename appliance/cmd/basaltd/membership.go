package main

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/lease"
	"github.com/basalt-gpu/basalt/appliance/cluster/membership"
	"github.com/basalt-gpu/basalt/appliance/cluster/pki"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
)

// Cluster implements server.Membership. It returns the cluster according to this node, so that
// it also works in a minority.
func (cl *cluster) Cluster(ctx context.Context) (api.Cluster, error) {
	out := api.Cluster{Name: cl.certificates.Cluster(), Leader: api.NodeID(cl.store.LeaderID()), Revision: cl.store.Revision()}
	now, verdicts := cl.leases.Verdicts()
	heard, why := map[api.NodeID]time.Time{}, map[api.NodeID]string{}
	for _, v := range verdicts {
		heard[v.Node] = v.LastHeartbeat.Wall(now, time.Now()).UTC()
		if v.State == lease.Silent {
			why[v.Node] = v.Why
		}
	}
	votes := map[string]bool{} // the present voters, not the planned ones: they determine which nodes may fail
	for _, m := range cl.store.Members() {
		votes[m.ID] = m.Voter
	}
	for _, n := range cl.directory.Nodes() {
		id := api.NodeID(n.Meta.ID)
		m := api.Member{Node: id, Name: n.Meta.Name, Voter: votes[n.Meta.ID], Leader: id == out.Leader,
			State: cmp.Or(n.Assignment.State, api.NodeReady), Reason: cmp.Or(n.Assignment.Reason, why[id]),
			PeerAddresses: n.Spec.PeerAddresses, APIAddress: n.Spec.APIAddress, Version: n.Status.Version}
		at, ok := heard[id]
		if !ok {
			at = cl.prober.LastAnswer(id).UTC()
		}
		if id == cl.self.Node {
			at = time.Now().UTC()
			ends := cl.certificates.Ends().UTC()
			m.CertificateUntil = &ends
		}
		if !at.IsZero() {
			m.HeardAt = &at
		}
		if time.Since(at) < lease.Silence {
			out.Alive++
		}
		if m.Voter {
			out.Voters++
		}
		out.Members = append(out.Members, m)
	}
	if ca, err := membership.Replacement(store.Stale(ctx), cl.store, cl.trust); err == nil {
		out.CA = &ca
	}
	slices.SortFunc(out.Members, func(a, b api.Member) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// NewJoinToken creates a join token.
func (cl *cluster) NewJoinToken(ctx context.Context, id api.JoinTokenID) (token, hash string, err error) {
	return membership.NewToken(ctx, cl.store, id)
}

// backupMeta is stored with a backup: what a new cluster needs before its store is open.
type backupMeta struct {
	Cluster string    `json:"cluster"`
	CA      pki.CA    `json:"ca"`
	Node    string    `json:"node"`
	Version string    `json:"version"`
	At      time.Time `json:"at"`
}

func (m *backupMeta) decode(raw []byte) error {
	if err := json.Unmarshal(raw, m); err != nil || m.Cluster == "" {
		return api.Errorf(api.CodeInvalid, "the backup does not name its cluster")
	}
	return nil
}

// Backup writes a backup of the state at its beginning.
func (cl *cluster) Backup(ctx context.Context, w io.Writer) error {
	ca, err := membership.Authority(ctx, cl.store)
	if err != nil {
		return err
	}
	meta, err := json.Marshal(backupMeta{Cluster: cl.certificates.Cluster(), CA: ca, Node: cl.self.Name, Version: version, At: time.Now().UTC()})
	if err != nil {
		return err
	}
	return cl.store.Backup(ctx, w, meta)
}

// Setup implements membership.Node: it returns the state of the node.
func (cl *cluster) Setup(ctx context.Context) api.Setup {
	c, _ := cl.Cluster(ctx)
	s := api.Setup{State: api.SetupMember, Node: cl.self.Name, NodeID: cl.self.Node, Cluster: c.Name,
		Addresses: []string{cl.self.APIAddress}, PeerAddresses: cl.self.PeerAddresses, Version: version,
		Members: len(c.Members), Alive: int(c.Alive)}
	for _, m := range c.Members {
		if m.Leader {
			s.Leader = m.Name
		}
	}
	quick, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := cl.store.Get(quick, api.KindNode, string(cl.self.Node))
	s.Quorum = err == nil || api.CodeOf(err) == api.CodeNotFound
	if !s.Quorum {
		s.Message = err.Error()
		if by := cl.leaderHint.RejectedBy(); by != "" {
			s.Message = cl.expelled(by, c.Members).Error()
		}
	}
	if cl.rebuilds() { // the client that requested it waits for a member with the new store
		s.Quorum, s.Message = false, "the node closes its store and gets that of the other nodes"
	}
	return s
}

// expelled returns the error of a node that was removed while it was unreachable, or whose
// other members became a cluster without it.
func (cl *cluster) expelled(by api.NodeID, members []api.Member) error {
	name := string(by)
	for _, m := range members {
		if m.Node == by {
			name = m.Name
		}
	}
	return api.Errorf(api.CodeState, "node %s reports that this node is no longer a member of the cluster", name).
		WithHint("to join again: stop basaltd, move its data directory away, then basalt node join TOKEN")
}

func isMember() error {
	return api.Errorf(api.CodeState, "this node is already a member of a cluster").WithHint("basalt cluster status; to leave it: basalt node leave")
}

// Init fails: it is for a node without a cluster.
func (cl *cluster) Init(context.Context, string) error { return isMember() }

// Join fails: it is for a node without a cluster.
func (cl *cluster) Join(context.Context, string) error { return isMember() }

// Restore fails: it is for a node without a cluster.
func (cl *cluster) Restore(context.Context, io.Reader) error { return isMember() }

// Leave removes the node from the cluster if no instance is left on it.
func (cl *cluster) Leave(ctx context.Context) error {
	page, err := cl.store.List(ctx, api.ListQuery{Kind: api.KindNode, Limit: 2})
	switch {
	case err != nil:
		return err
	case len(page.Items) < 2:
		return api.Errorf(api.CodeState, "this node is the only member of the cluster").WithHint("to take it down, stop basaltd")
	}
	instances, err := api.All[api.Instance](ctx, cl.store, api.ListQuery{Kind: api.KindInstance})
	if err != nil {
		return err
	}
	for _, in := range instances {
		if in.Assignment.Node == cl.self.Node {
			return api.Errorf(api.CodeInUse, "instance %s is on this node", in.Meta.Name).WithHint("basalt node drain %s, then leave", cl.self.Name)
		}
	}
	_, err = cl.store.Apply(ctx, api.Batch{Commands: []api.Command{{Op: api.OpDelete, Kind: api.KindNode, ID: string(cl.self.Node), Expect: api.AnyRevision}}})
	if err != nil {
		return err
	}
	if cl.fence != nil {
		if err := cl.fence.Disarm(); err != nil {
			cl.log.Warn("report leave to basalt-fence failed", "error", err)
		}
	}
	return cl.endMembership("the node has left the cluster")
}

// Recover makes this node alone the cluster. It takes effect when everything is opened again.
func (cl *cluster) Recover(_ context.Context, confirm string) error {
	if confirm != cl.self.Name {
		return api.Errorf(api.CodeInvalid, "to confirm, name this node: %s", cl.self.Name).At("confirm").
			WithHint("every other node must be switched off, and joins again with an empty data directory")
	}
	if err := cl.change(func(r *membership.Record) { r.Recover, r.Founder, r.Rebuild = true, true, false }); err != nil {
		return err
	}
	cl.requestRestart(errBeginAnew)
	return nil
}

// Rebuild rebuilds this node's store. It takes effect when everything is opened again.
func (cl *cluster) Rebuild(context.Context) error {
	if !slices.ContainsFunc(cl.store.Members(), func(m store.Member) bool { return m.Voter && m.ID != string(cl.self.Node) }) {
		return api.Errorf(api.CodeState, "this node is the only voter of the cluster: no other node has its data").
			WithHint("basalt cluster backup FILE keeps it")
	}
	if err := cl.change(func(r *membership.Record) { r.Rebuild = true }); err != nil {
		return err
	}
	cl.requestRestart(errBeginAnew)
	return nil
}

// rebuilds reports whether the open store is to be rebuilt.
func (cl *cluster) rebuilds() bool {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.rec.Rebuild
}

// recoverAlone executes a requested recovery, before the store is opened.
func (cl *cluster) recoverAlone(dir string) error {
	if !cl.rec.Recover {
		return nil
	}
	return store.Recover(dir, membership.WatermarkFile(cl.dir), string(cl.self.Node))
}

// removeOthers completes a recovery: it deletes the other nodes' objects, so that their
// certificates become invalid and their instances start here.
func (cl *cluster) removeOthers(ctx context.Context) error {
	if !cl.rec.Recover {
		return nil
	}
	nodes, err := api.All[api.Node](ctx, cl.store, api.ListQuery{Kind: api.KindNode})
	if err != nil {
		return err
	}
	var cmds []api.Command
	for _, n := range nodes {
		if n.Meta.ID != string(cl.self.Node) {
			cmds = append(cmds, api.Command{Op: api.OpDelete, Kind: api.KindNode, ID: n.Meta.ID, Expect: api.AnyRevision})
		}
	}
	if len(cmds) > 0 {
		if _, err := cl.store.Apply(ctx, api.Batch{Commands: cmds}); err != nil {
			return err
		}
	}
	return cl.change(func(r *membership.Record) { r.Recover, r.Peers = false, nil })
}
