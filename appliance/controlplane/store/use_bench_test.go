package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing"
)

// meters of an instance with a virtual GPU, in the order of keys.
var instanceMeters = []api.Meter{api.MeterGPU, api.MeterMemory, api.MeterVCPU, api.MeterVRAM}

// BenchmarkMonth is the invoices of a month: every instance ran all of its 720
// hours. BASALT_BENCH_INSTANCES says how many there are, a hundred to an
// organization, two organizations rated at a time; the baseline reads the same
// rows of bbolt and does nothing with them.
func BenchmarkMonth(b *testing.B) {
	instances, err := strconv.Atoi(os.Getenv("BASALT_BENCH_INSTANCES"))
	if err != nil {
		instances = 1000
	}
	const each = 100
	from := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	to := from.AddDate(0, 0, 30)
	s := open(b, Options{})
	organizations := max(instances/each, 1)
	for o := range organizations { // sorted keys: pages are filled one after the other
		if err := s.tables.db.Update(func(tx *bbolt.Tx) error {
			bucket := tx.Bucket(bucketUse)
			bucket.FillPercent = 0.9
			for h := from; h.Before(to); h = h.Add(time.Hour) {
				for _, m := range instanceMeters {
					for i := range each {
						u := api.Use{Hour: h, Meter: m, Project: fmt.Sprintf("prj-%012d", o), Resource: fmt.Sprintf("ins-%012d", o*each+i), ResourceName: "train", NamedAt: h, Quantity: 3600}
						if err := bucket.Put(useKey(fmt.Sprintf("org-%012d", o), u), encodeUse(u)); err != nil {
							return err
						}
					}
				}
			}
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
	rows := float64(organizations * each * len(instanceMeters) * 720)
	name := fmt.Sprintf("instances=%d", organizations*each)
	b.Run("baseline=bbolt/"+name, func(b *testing.B) {
		for range b.N {
			n := 0
			if err := s.tables.db.View(func(tx *bbolt.Tx) error {
				return tx.Bucket(bucketUse).ForEach(func(_, _ []byte) error { n++; return nil })
			}); err != nil || float64(n) != rows {
				b.Fatal(n, err)
			}
		}
	})
	b.Run("store/"+name, func(b *testing.B) {
		for range b.N {
			var next atomic.Int64
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() {
					for o := next.Add(1) - 1; o < int64(organizations); o = next.Add(1) - 1 {
						if n, err := invoice(b.Context(), s, fmt.Sprintf("org-%012d", o), from, to); err != nil || n != each*len(instanceMeters) {
							b.Error(n, err)
							return
						}
					}
				})
			}
			wg.Wait()
		}
		b.ReportMetric(float64(b.N)*rows/b.Elapsed().Seconds(), "rows/s")
	})
}

// invoice rates an organization's use and answers how many lines there are.
func invoice(ctx context.Context, s *Store, org string, from, to time.Time) (int, error) {
	r, err := billing.NewRating(api.OrganizationID(org), billing.DefaultPriceBook(), from, to)
	if err != nil {
		return 0, err
	}
	for q := (api.UseQuery{Organization: org, From: from, To: to, Limit: api.MaxUse}); ; {
		page, err := s.Use(ctx, q)
		if err != nil {
			return 0, err
		}
		for _, u := range page.Items {
			if err := r.Add(u); err != nil {
				return 0, err
			}
		}
		if !page.More {
			inv, err := r.Invoice()
			return len(inv.Lines), err
		}
		q.After = page.Items[len(page.Items)-1]
	}
}

// BenchmarkRecords is usage records that many agents report at once, 256 in a
// batch as they do. baseline is the same JSON in as many puts of bbolt, as many
// in a commit, one writer. An operation is a batch.
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
				Data: api.Encode(api.UsageRecordSpec{Meter: instanceMeters[i%4], Resource: resource, ResourceName: "train", Node: "node-000000000001",
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
