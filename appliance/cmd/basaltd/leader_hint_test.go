package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

type fakeElector struct{ leader string }

func (f *fakeElector) Verify(context.Context) (uint64, error) { return 0, errors.New("not leading") }
func (f *fakeElector) IsLeader() bool                         { return false }
func (f *fakeElector) LeaderID() string                       { return f.leader }
func (f *fakeElector) LeadershipChanged() <-chan struct{}     { return nil }

// TestGuideAsksTheOthers: a node whose Raft names no leader uses the answers of the members
// that it reaches, and Raft again as soon as it names one.
func TestGuideAsksTheOthers(t *testing.T) {
	raft := &fakeElector{}
	var knows, expelled atomic.Bool
	knows.Store(true)
	g := &leaderHint{store: raft, peers: func() []api.NodeID { return []api.NodeID{"b", "c", "d"} },
		ask: func(_ context.Context, member api.NodeID) (api.NodeID, error) {
			switch {
			case member == "c": // it is the leader, and is not reachable
				return "", errors.New("no answer")
			case member == "d" && knows.Load():
				return "c", nil
			case member == "b" && expelled.Load():
				return "", api.Errorf(api.CodeForbidden, "no member")
			}
			return "", nil
		}}
	if got := g.LeaderID(); got != "" {
		t.Errorf("LeaderID before any member was asked = %q, want none", got)
	}
	g.record(g.askAll(t.Context()))
	if got := g.LeaderID(); got != "c" {
		t.Errorf("LeaderID after d named c = %q, want c", got)
	}
	knows.Store(false)
	g.record(g.askAll(t.Context()))
	if got := g.LeaderID(); got != "c" {
		t.Errorf("LeaderID while no member names one = %q, want c as before", got)
	}
	if by := g.RejectedBy(); by != "" {
		t.Errorf("RejectedBy = %q, want none", by)
	}
	expelled.Store(true)
	g.record(g.askAll(t.Context()))
	if by := g.RejectedBy(); by != "b" {
		t.Errorf("RejectedBy after b rejected this node = %q, want b", by)
	}
	raft.leader = "b"
	if got := g.LeaderID(); got != "b" {
		t.Errorf("LeaderID while Raft names b = %q, want b", got)
	}
}
