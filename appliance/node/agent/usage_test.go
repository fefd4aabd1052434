package agent

import (
	"context"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/billing/meter"
)

// TestRecordsOfTwoNodesAreDifferent has two nodes record the same resource over the
// same hour, as its owner before and after an assignment: their records must have
// different IDs.
func TestRecordsOfTwoNodesAreDifferent(t *testing.T) {
	store, now := memstore.New(), t0.Truncate(time.Hour)
	for epoch, node := range []api.NodeID{"node-1", "node-2"} {
		a := New(Options{NodeID: node, DataDir: t.TempDir(), Store: store, Now: func() time.Time { return now }})
		for _, at := range []time.Time{t0.Truncate(time.Hour), t0.Truncate(time.Hour).Add(time.Hour)} {
			now = at
			o := meter.Observation{Run: "run", Rates: meter.Rates{api.MeterVCPU: 1}}
			if err := a.meter.observe(context.Background(), meter.Resource{ID: "ins-1", Node: node}, int64(epoch+1), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	page, err := store.Records(context.Background(), api.RecordQuery{Limit: 10})
	if err != nil || len(page.Items) != 2 {
		t.Errorf("store has %d records, error %v; want 2", len(page.Items), err)
	}
}
