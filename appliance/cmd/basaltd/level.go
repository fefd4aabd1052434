package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// levelPath is the call by which a member reports the feature level that its release supports.
// Releases from before feature levels do not answer it.
const levelPath = "/store/level"

const (
	levelEvery = 5 * time.Second // interval while a member has an older release
	levelLimit = 5 * time.Second // limit for a member's answer
)

// raise raises the cluster's feature level to the highest that all members support, while this
// node is the leader in the term. After an upgrade that is soon after the last node.
func (n *node) raise(ctx context.Context, term uint64, log *slog.Logger) {
	for ctx.Err() == nil {
		level, _, err := n.store.Settled()
		if err == nil && level >= state.Level {
			return
		}
		members, to := n.supported(ctx)
		if to > level && !n.undecided(ctx) {
			if err = n.store.RaiseLevel(ctx, term, to, members); err == nil {
				log.Info("raised feature level of the cluster", "level", to)
				continue
			}
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("raise feature level of the cluster failed", "error", err)
		}
		sleep(ctx, levelEvery)
	}
}

// undecided reports whether a node may still be rolled back to the previous release, which
// would not support a new level.
func (n *node) undecided(ctx context.Context) bool {
	all, err := api.All[api.Upgrade](ctx, n.store, api.ListQuery{Kind: api.KindUpgrade})
	return err != nil || slices.ContainsFunc(all, api.Upgrade.Unfinished)
}

// everyNode returns the IDs of the members, and of nodes that are none.
func (n *node) everyNode(ctx context.Context) ([]string, error) {
	var all []string
	for _, m := range n.store.Members() {
		all = append(all, m.ID)
	}
	nodes, err := api.All[api.Node](ctx, n.store, api.ListQuery{Kind: api.KindNode})
	if err != nil {
		return nil, fmt.Errorf("list the nodes: %w", err)
	}
	for _, o := range nodes {
		if !slices.Contains(all, o.Meta.ID) {
			all = append(all, o.Meta.ID)
		}
	}
	return all, nil
}

// supported returns the members and the level that all of them support; 0: not all of them have
// answered.
func (n *node) supported(ctx context.Context) (members []string, level int) {
	members, err := n.everyNode(ctx)
	if err != nil {
		return nil, 0
	}
	level = state.Level
	for _, id := range members {
		if n.cluster == nil || id == string(n.cluster.self.Node) {
			continue
		}
		var its int
		quick, cancel := context.WithTimeout(ctx, levelLimit)
		err := n.cluster.client.Call(quick, api.NodeID(id), http.MethodPost, levelPath, struct{}{}, &its)
		cancel()
		if err != nil {
			return nil, 0
		}
		level = min(level, its)
	}
	return members, level
}
