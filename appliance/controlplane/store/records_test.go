package store

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
)

// A record that was acknowledged is read on every node, although it moves no
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
				t.Fatalf("%s has %d records of %d, which come to %d, %v", id, records, k, sum, err)
			}
		}
	}
	if _, err := c.store(c.follower()).Apply(t.Context(), api.Batch{Commands: []api.Command{statetest.Record(0, 1), {Op: api.OpRecord, Kind: api.KindUsageRecord, ID: "use-x", Data: []byte(`{}`)}}}); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("through a follower: %v", err)
	}
}
