package network

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

// emptyState returns a state without objects.
func emptyState() *state { return stateOf(objects.NewSet(Kinds...)) }

// cluster is a store that tests write objects to.
type cluster struct {
	t     *testing.T
	store *memstore.Store
}

func (c cluster) put(kind api.Kind, id string, spec any) {
	c.apply(api.Command{Op: api.OpPutSpec, Kind: kind, ID: id, Name: id, Organization: "org-1", Project: "prj-1", Expect: api.AnyRevision, Data: api.Encode(spec)})
}

func (c cluster) apply(cmd api.Command) {
	c.t.Helper()
	if _, err := c.store.Apply(context.Background(), api.Batch{At: time.Now().UTC(), Commands: []api.Command{cmd}}); err != nil {
		c.t.Fatal(err)
	}
}

// Only the reports of nodes that are alive count.
func TestTheDeadDoNotReport(t *testing.T) {
	st := emptyState()
	for id, state := range map[string]api.NodeState{"alone": "", "ready": api.NodeReady, "drained": api.NodeDrained, "suspect": api.NodeSuspect, "lost": api.NodeLost} {
		st.nodes[id] = api.Node{Meta: api.Meta{ID: id}, Assignment: api.NodeAssignment{State: state}}
		st.chassis[id] = Chassis{Meta: api.Meta{ID: id}}
	}
	st.chassis["removed"] = Chassis{}
	got := slices.Sorted(maps.Keys(st.reports()))
	if want := []string{"alone", "drained", "ready"}; !slices.Equal(got, want) {
		t.Errorf("nodes with reports = %v, want %v", got, want)
	}
}
