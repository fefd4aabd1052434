package network

import (
	"context"
	"fmt"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/ovn/deploy"
)

// nets is a fake of the northbound database, with rows of some networks.
type nets struct {
	rows   []api.NetworkID
	closed bool
}

func (n *nets) Leaks(_ context.Context, t sdn.Topology) (all []api.Leak, err error) {
	wanted := map[api.NetworkID]bool{}
	for _, x := range t.Networks {
		wanted[x.ID] = true
	}
	for _, id := range n.rows {
		if !wanted[id] {
			all = append(all, api.Leak{ID: string(id), What: "of " + t.Cluster})
		}
	}
	return all, nil
}

func (n *nets) Close() error { n.closed = true; return nil }

// The current objects determine which rows are leaked.
func TestLeaks(t *testing.T) {
	h := cluster{t: t, store: memstore.New()}
	db := &nets{rows: []api.NetworkID{"net-1", "net-2"}}
	var asked []deploy.Member
	w := &Sweeper{Store: h.store, Cluster: "c", Self: deploy.Member{Node: "node-1"},
		Open: func(members []deploy.Member, _ deploy.Bootstrap) Rows { asked = members; return db }}
	got, err := w.Leaks(t.Context())
	if err != nil || len(got) != 0 || asked != nil {
		t.Errorf("leaks without a database = %v, %v, opened with %v; want none and not opened", got, err, asked)
	}
	h.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindOVN, ID: ovnID, Name: ovnID, Expect: api.AnyRevision, Data: api.Encode(deploy.Bootstrap{Generation: 1, NB: "x", SB: "y"})})
	h.put(api.KindProject, "prj-1", api.ProjectSpec{})
	h.put(api.KindNetwork, "net-1", api.NetworkSpec{Cidr4: "10.0.0.0/24"})
	h.apply(api.Command{Op: api.OpAssign, Kind: api.KindNetwork, ID: "net-1", Expect: api.AnyRevision, Data: api.Encode(api.NetworkAssignment{Key: 1, Gateway4: "10.0.0.1"})})
	got, err = w.Leaks(t.Context())
	if err != nil || fmt.Sprint(got) != "[{net-2  of c}]" || !db.closed || len(asked) != 1 || asked[0].Node != "node-1" {
		t.Errorf("leaks = %+v, %v, opened with %v, closed %t; want net-2 from node-1's database, and closed", got, err, asked, db.closed)
	}
}
