package store

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
)

// An acknowledged record is read on every node, although it does not change the
// revision.
func TestRecordsOnEveryNode(t *testing.T) {
	if testing.Short() {
		t.Skip("elections among three nodes take seconds")
	}
	c := newCluster(t, 3, Options{})
	for k := 1; k <= 20; k++ {
		ids := c.ids()
		if _, err := c.store(ids[k%3]).Apply(t.Context(), api.Batch{Commands: []api.Command{statetest.Record(0, k)}}); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if records, sum, err := crashUsed(c.store(id), 0); records != k || sum != int64(k)*int64(k+1)/2 || err != nil {
				t.Fatalf("%s has %d records with a sum of %d, %v; want %d with %d", id, records, sum, err, k, int64(k)*int64(k+1)/2)
			}
		}
	}
	if _, err := c.store(c.follower()).Apply(t.Context(), api.Batch{Commands: []api.Command{statetest.Record(0, 1), {Op: api.OpRecord, Kind: api.KindUsageRecord, ID: "use-x", Data: []byte(`{}`)}}}); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("apply an invalid record through a follower: %v, want code %s", err, api.CodeInvalid)
	}
}
