package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/transport"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

const (
	partPath    = "/store/part"
	differsPath = "/store/differs"

	// partLimit is the limit for a member to reach the entry and compute the sum of a part.
	partLimit = 30 * time.Second
)

// serveCompare answers the calls of a leader that compares tables.
func (cl *cluster) serveCompare(s *store.Store) {
	cl.server.Handle("POST "+partPath, transport.JSON(func(ctx context.Context, _ api.NodeID, index uint64) (state.Part, error) {
		return s.Part(ctx, index)
	}))
	cl.server.Handle("POST "+differsPath, transport.JSON(func(_ context.Context, caller api.NodeID, p state.Part) (struct{}, error) {
		cl.log.Error("this node's tables are not what most nodes have", "from", p.From.String(), "entry", p.Index, "says", caller)
		return struct{}{}, cl.differs(p)
	}))
}

// differs marks the store as damaged and ends this life: the store is refused in the next.
func (cl *cluster) differs(p state.Part) error {
	if err := cl.store.Differs(p); err != nil {
		return fmt.Errorf("mark the store as damaged: %w", err)
	}
	cl.requestRestart(errBeginAnew)
	return nil
}

// compare compares the members' tables, part by part, while this node is the leader in the
// term.
func (cl *cluster) compare(ctx context.Context, term uint64, every time.Duration, log *slog.Logger) {
	from := cl.store.CompareFrom()
	pause := func() { sleep(ctx, store.ComparePace(cl.store.TablesBytes(), every)) }
	again := false
	for pause(); ctx.Err() == nil; pause() {
		level, _, err := cl.store.Settled()
		if err != nil || level < state.CompareLevel {
			continue
		}
		// Every second comparison is of a part without a majority, to find whether it has one
		// now.
		split, ok := cl.splits.first(time.Now())
		if again = ok && !again; again {
			_, err = cl.compareOnce(ctx, term, split, log)
		} else {
			from, err = cl.compareOnce(ctx, term, from, log)
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("compare the nodes' tables failed", "error", err)
		}
	}
}

// compareOnce compares a part and returns where the next one begins.
func (cl *cluster) compareOnce(ctx context.Context, term uint64, from state.Place, log *slog.Logger) (next state.Place, err error) {
	index, err := cl.store.Compare(ctx, term, from)
	if err != nil {
		return from, fmt.Errorf("begin to compare the stores of term %d: %w", term, err)
	}
	ctx, cancel := context.WithTimeout(ctx, partLimit)
	defer cancel()
	self := string(cl.self.Node)
	own, err := cl.store.Part(ctx, index)
	if err != nil {
		return from, fmt.Errorf("read the part of the store at index %d: %w", index, err)
	}
	all := map[string]state.Part{self: own}
	members := cl.store.Members()
	for _, m := range members {
		var p state.Part
		if m.ID == self {
			continue
		}
		if err := cl.client.Call(ctx, api.NodeID(m.ID), http.MethodPost, partPath, index, &p); err == nil && p.Index == index {
			all[m.ID] = p // a member that does not answer is compared the next time
		}
	}
	different, agreed := state.Differing(all)
	log.Debug("a part of the nodes' tables was compared", "entry", index, "nodes", len(all), "different", len(different), "all", from.Bucket == "" && own.Next.Bucket == "")
	if !spared(members, all, different) {
		log.Warn("a node's tables are not what most nodes have, and its vote is needed until another has one", "nodes", different, "from", from.String(), "entry", index)
		return from, nil
	}
	if agreed && 2*(len(all)-len(different)) > len(members) { // a majority of those that answer is not sufficient
		cl.splits.agreed(from, own.Next)
	}
	if !agreed {
		groups := parties(all, cl.names())
		cl.splits.add(split{from: from, groups: groups, index: index, at: time.Now()})
		log.Error("tables of the nodes differ, and no majority has the same", "from", from.String(), "entry", index, "nodes", groups)
	}
	slices.Sort(different)
	for _, id := range different {
		log.Error("a node's tables are not what most nodes have", "node", id, "from", from.String(), "entry", index)
		if id == self {
			return own.Next, cl.differs(own)
		}
		if err := cl.client.Call(ctx, api.NodeID(id), http.MethodPost, differsPath, own, &struct{}{}); err != nil {
			return own.Next, fmt.Errorf("tell node %s that its store differs: %w", id, err)
		}
	}
	return own.Next, nil
}

// spared reports whether the voters that were compared and do not differ are a majority of all
// voters. A node whose store is refused cannot vote, and without a majority the cluster could
// not even remove it as a voter.
func spared(members []store.Member, compared map[string]state.Part, different []string) bool {
	voters, left := 0, 0
	for _, m := range members {
		if !m.Voter {
			continue
		}
		voters++
		if _, ok := compared[m.ID]; ok && !slices.Contains(different, m.ID) {
			left++
		}
	}
	return len(different) == 0 || 2*left > voters
}
