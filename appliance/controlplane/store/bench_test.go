package store

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
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

// BenchmarkCommit measures committed writes, each acknowledged after the fsyncs of log
// and tables. The baseline is one put and one fsync'd commit of bbolt.
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

// BenchmarkGet measures a linearizable read on a node that is alone.
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

// BenchmarkSearch measures a page of a search among 20,000 instances; "none" is the
// worst case, as all names are examined, and for an address all objects are.
func BenchmarkSearch(b *testing.B) {
	s := open(b, Options{})
	spec := api.Encode(api.InstanceSpec{Flavor: "flv-000000000001", Image: "img-000000000001", UserData: strings.Repeat("x", 500)})
	for n := 0; n < 20_000; n += 1000 {
		var batch api.Batch
		for i := n; i < n+1000; i++ {
			batch.Commands = append(batch.Commands, api.Command{Op: api.OpPutSpec, Kind: api.KindInstance, ID: fmt.Sprintf("ins-%012x", i), Name: fmt.Sprintf("train-%d", i),
				Organization: "org-1", Project: "prj-1", Data: spec, Claims: []string{fmt.Sprintf("ip/net-1/10.0.%d.%d", i/250, i%250)}})
		}
		if _, err := s.Apply(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	for _, c := range []struct{ name, search string }{{"many", "train"}, {"one", "train-19999"}, {"none", "nothing"}, {"address", "10.0.79.249"}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := s.List(b.Context(), api.ListQuery{Kind: api.KindInstance, Search: c.search, Limit: 25}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
