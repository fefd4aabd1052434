package store

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
)

// BenchmarkRecords measures usage records that many agents report at once, 256 per
// batch as in operation. The baseline is the same JSON in as many puts of bbolt, as
// many per commit, one writer. An operation is a batch.
func BenchmarkRecords(b *testing.B) {
	const batch, agents = 256, 32
	records := func(n int64) api.Batch {
		out := api.Batch{Commands: make([]api.Command, 0, batch)}
		end := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(n/64) * time.Minute)
		for i := range int64(batch) {
			id := fmt.Sprintf("use-%016x%08x", n, i)
			resource := fmt.Sprintf("ins-%012d", (n%64)*64+i/4)
			out.Commands = append(out.Commands, api.Command{Op: api.OpRecord, Kind: api.KindUsageRecord, ID: id, Name: id,
				Organization: fmt.Sprintf("org-%012d", n%64), Project: fmt.Sprintf("prj-%012d", n%64),
				Data: api.Encode(api.UsageRecordSpec{Meter: statetest.Meters[i%4], Resource: resource, ResourceName: "train", Node: "node-000000000001",
					Start: end.Add(-time.Minute), End: end, Quantity: 60})})
		}
		return out
	}
	b.Run("baseline=bbolt", func(b *testing.B) {
		db, err := bbolt.Open(filepath.Join(b.TempDir(), "db"), 0o600, boltOptions())
		if err != nil {
			b.Fatal(err)
		}
		defer db.Close()
		for n := range b.N {
			if err := db.Update(func(tx *bbolt.Tx) error {
				bucket, err := tx.CreateBucketIfNotExists([]byte("b"))
				if err != nil {
					return err
				}
				for i, c := range records(int64(n)).Commands {
					if err := bucket.Put(binary.BigEndian.AppendUint64(nil, uint64(n*batch+i)), c.Data); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "records/s")
	})
	b.Run(fmt.Sprintf("store/agents=%d", agents), func(b *testing.B) {
		s := open(b, Options{})
		var next atomic.Int64
		var wg sync.WaitGroup
		for range agents {
			wg.Go(func() {
				for n := next.Add(1) - 1; n < int64(b.N); n = next.Add(1) - 1 {
					if _, err := s.Apply(b.Context(), records(n)); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "records/s")
	})
}
