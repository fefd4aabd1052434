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
func (f *fakeElector) LeadChange() <-chan struct{}            { return nil }

// A node that Raft tells of no leader believes the members that it can hear,
// and Raft again as soon as it speaks.
func TestGuideAsksTheOthers(t *testing.T) {
	raft := &fakeElector{}
	var knows, expelled atomic.Bool
	knows.Store(true)
	g := &leaderHint{store: raft, peers: func() []api.NodeID { return []api.NodeID{"b", "c", "d"} },
		ask: func(_ context.Context, member api.NodeID) (api.NodeID, error) {
			switch {
			case member == "c": // it leads, and is not heard
				return "", errors.New("no answer")
			case member == "d" && knows.Load():
				return "c", nil
			case member == "b" && expelled.Load():
				return "", api.Errorf(api.CodeForbidden, "no member")
			}
			return "", nil
		}}
	if got := g.LeaderID(); got != "" {
		t.Errorf("before anybody was asked it is %q", got)
	}
	g.hear(g.askAll(t.Context()))
	if got := g.LeaderID(); got != "c" {
		t.Errorf("d says c, and it is %q", got)
	}
	knows.Store(false)
	g.hear(g.askAll(t.Context()))
	if got := g.LeaderID(); got != "c" {
		t.Errorf("nobody knows better, and it is %q", got)
	}
	if by := g.RefusedBy(); by != "" {
		t.Errorf("refused by %q", by)
	}
	expelled.Store(true)
	g.hear(g.askAll(t.Context()))
	if by := g.RefusedBy(); by != "b" {
		t.Errorf("b says that this node is no member, and it is %q", by)
	}
	raft.leader = "b"
	if got := g.LeaderID(); got != "b" {
		t.Errorf("Raft says b, and it is %q", got)
	}
}
