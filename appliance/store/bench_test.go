package store

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
)

func benchBatch(n int64) api.Batch {
	id := fmt.Sprintf("flv-%d", n%1000)
	return api.Batch{Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindFlavor, ID: id, Name: id,
		Expect: api.AnyRevision, Data: fmt.Appendf(nil, `{"vcpus":%d,"memoryBytes":1073741824}`, n)}}}
}

// BenchmarkCommit is committed writes, each acknowledged after the fsyncs of
// log and tables. baseline is one put and one fsync'd commit of bbolt.
func BenchmarkCommit(b *testing.B) {
	b.Run("baseline=bbolt/clients=1", func(b *testing.B) {
		db, err := bbolt.Open(filepath.Join(b.TempDir(), "db"), 0o600, boltOptions())
		if err != nil {
			b.Fatal(err)
		}
		defer db.Close()
		for n := range b.N {
			err := db.Update(func(tx *bbolt.Tx) error {
				bucket, err := tx.CreateBucketIfNotExists([]byte("b"))
				if err != nil {
					return err
				}
				return bucket.Put(fmt.Appendf(nil, "flv-%d", n%1000), benchBatch(int64(n)).Commands[0].Data)
			})
			if err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
	})
	for _, clients := range []int{1, 64} {
		b.Run(fmt.Sprintf("store/clients=%d", clients), func(b *testing.B) {
			s := open(b, Options{})
			var n atomic.Int64
			done := make(chan error, clients)
			b.ResetTimer()
			for range clients {
				go func() {
					for {
						k := n.Add(1)
						if k > int64(b.N) {
							done <- nil
							return
						}
						if _, err := s.Apply(context.Background(), benchBatch(k)); err != nil {
							done <- err
							return
						}
					}
				}()
			}
			for range clients {
				if err := <-done; err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
		})
	}
}

// BenchmarkGet is a linearizable read on a node that is alone.
func BenchmarkGet(b *testing.B) {
	s := open(b, Options{})
	if _, err := s.Apply(b.Context(), benchBatch(1)); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Get(context.Background(), api.KindFlavor, "flv-1"); err != nil {
			b.Fatal(err)
		}
	}
}
