package state

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
	"github.com/basalt-gpu/basalt/billing/invoice"
	"github.com/basalt-gpu/basalt/billing/pricebook"
)

// BenchmarkMonth measures the invoices of a month in which every instance ran for all
// 720 hours. BASALT_BENCH_INSTANCES is the number of instances, a hundred per
// organization, two organizations rated at a time; the baseline only reads the same
// rows from bbolt.
func BenchmarkMonth(b *testing.B) {
	instances, err := strconv.Atoi(os.Getenv("BASALT_BENCH_INSTANCES"))
	if err != nil {
		instances = 1000
	}
	const each = 100
	from := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	to := from.AddDate(0, 0, 30)
	tb := bare(b)
	organizations := max(instances/each, 1)
	for o := range organizations { // sorted keys: pages are filled one after the other
		if err := tb.db.Update(func(tx *bbolt.Tx) error {
			bucket := tx.Bucket(bucketUse)
			bucket.FillPercent = 0.9
			for h := from; h.Before(to); h = h.Add(time.Hour) {
				for _, m := range statetest.Meters {
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
	rows := float64(organizations * each * len(statetest.Meters) * 720)
	name := fmt.Sprintf("instances=%d", organizations*each)
	b.Run("baseline=bbolt/"+name, func(b *testing.B) {
		for range b.N {
			n := 0
			if err := tb.db.View(func(tx *bbolt.Tx) error {
				return tx.Bucket(bucketUse).ForEach(func(_, _ []byte) error { n++; return nil })
			}); err != nil || float64(n) != rows {
				b.Fatalf("read %d rows, %v; want %.0f", n, err, rows)
			}
		}
	})
	b.Run("tables/"+name, func(b *testing.B) {
		for range b.N {
			var next atomic.Int64
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() {
					for o := next.Add(1) - 1; o < int64(organizations); o = next.Add(1) - 1 {
						if n, err := linesOf(tb, fmt.Sprintf("org-%012d", o), from, to); err != nil || n != each*len(statetest.Meters) {
							b.Errorf("lines of org-%012d = %d, %v; want %d", o, n, err, each*len(statetest.Meters))
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

// linesOf rates an organization's use and returns the number of invoice lines.
func linesOf(tb *tables, org string, from, to time.Time) (int, error) {
	r, err := invoice.NewRating(api.OrganizationID(org), pricebook.Always(pricebook.Default()), invoice.Whole(from, to))
	if err != nil {
		return 0, err
	}
	for q := (api.UseQuery{Organization: org, From: from, To: to, Limit: api.MaxUse}); ; {
		var page api.UsePage
		if err := tb.read(func(v View) (err error) { page, err = v.Use(q); return err }); err != nil {
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
