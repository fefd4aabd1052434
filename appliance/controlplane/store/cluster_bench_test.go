package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// fsyncs returns how many writes of 4 KiB, one after the other, the disk makes durable
// in a second.
func fsyncs(b *testing.B, dir string) float64 {
	b.Helper()
	f, err := os.Create(filepath.Join(dir, "fsync"))
	if err != nil {
		b.Fatal(err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	page := make([]byte, 4096)
	n, begun := 0, time.Now()
	for ; time.Since(begun) < time.Second; n++ {
		if _, err := f.WriteAt(page, int64(n%1024)*4096); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	return float64(n) / time.Since(begun).Seconds()
}

// BenchmarkClusterCommit measures writes on three nodes, which share one disk here,
// acknowledged after the fsyncs of log and tables. disk-fsyncs/s is measured just
// before; writes/fsync is the ratio of the two rates.
func BenchmarkClusterCommit(b *testing.B) {
	for _, clients := range []int{1, 1000} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			c := newCluster(b, 3, Options{})
			disk := fsyncs(b, c.options.Dir)
			s := c.store(c.leader())
			var n atomic.Int64
			var all sync.WaitGroup
			b.ResetTimer()
			for range clients {
				all.Go(func() {
					for k := n.Add(1); k <= int64(b.N); k = n.Add(1) {
						if _, err := s.Apply(context.Background(), benchBatch(k)); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			rate := float64(b.N) / b.Elapsed().Seconds()
			b.ReportMetric(rate, "writes/s")
			b.ReportMetric(disk, "disk-fsyncs/s")
			b.ReportMetric(rate/disk, "writes/fsync")
		})
	}
}

// BenchmarkLeaderLoss measures the time from the moment at which the leader is cut off
// until a write on another node is acknowledged. One operation is a series of rounds;
// at least 20 are needed for the percentiles.
func BenchmarkLeaderLoss(b *testing.B) {
	c := newCluster(b, 3, Options{LeaderWait: 30 * time.Second})
	var took []time.Duration
	round := func() {
		id := c.leader()
		other := c.follower()
		c.isolate(id)
		begun := time.Now()
		if _, err := c.store(other).Apply(context.Background(), api.Batch{ID: fmt.Sprint("loss-", len(took)),
			Commands: benchBatch(int64(len(took))).Commands}); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begun))
		c.cut()
		old := c.store(id)
		eventually(b, "the old leader follows", func() bool {
			_, err := old.Get(context.Background(), api.KindFlavor, "none")
			return api.CodeOf(err) == api.CodeNotFound
		})
	}
	for b.Loop() {
		for range 25 {
			round()
		}
	}
	b.ReportMetric(percentile(took, 50).Seconds(), "p50-s")
	b.ReportMetric(percentile(took, 99).Seconds(), "p99-s")
	b.ReportMetric(slices.Max(took).Seconds(), "max-s")
	b.ReportMetric(float64(len(took)), "rounds")
}

func percentile(d []time.Duration, p int) time.Duration {
	d = slices.Clone(d)
	slices.Sort(d)
	return d[min(len(d)-1, len(d)*p/100)]
}

// BenchmarkList measures pages of 100 instances out of 20,000 on 1,000 nodes, of all
// and of one project; heap-MiB and file-MiB are the store's with all of them.
func BenchmarkList(b *testing.B) {
	const nodes, instances, projects = 1000, 20_000, 200
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	s := open(b, Options{})
	populate(b, s, api.KindNode, nodes, projects)
	populate(b, s, api.KindInstance, instances, projects)
	runtime.GC()
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	for _, q := range []struct {
		name  string
		query api.ListQuery
	}{
		{"page=100", api.ListQuery{Kind: api.KindInstance, Limit: 100}},
		{"project", api.ListQuery{Kind: api.KindInstance, Project: "prj-7", Limit: 1000}},
		{"page=1000", api.ListQuery{Kind: api.KindInstance, Limit: 1000}},
	} {
		b.Run(q.name, func(b *testing.B) {
			var took []time.Duration
			next := ""
			for b.Loop() {
				begun := time.Now()
				query := q.query
				query.Continue = next
				page, err := s.List(context.Background(), query)
				if err != nil || len(page.Items) == 0 {
					b.Fatalf("list: %d items, %v; want some", len(page.Items), err)
				}
				took = append(took, time.Since(begun))
				next = page.Continue
			}
			b.ReportMetric(float64(percentile(took, 99).Microseconds())/1000, "p99-ms")
			b.ReportMetric(float64(after.HeapAlloc-min(before.HeapAlloc, after.HeapAlloc))/(1<<20), "heap-MiB")
			if st, err := os.Stat(s.tables.path); err == nil {
				b.ReportMetric(float64(st.Size())/(1<<20), "file-MiB")
			}
		})
	}
}

func populate(b *testing.B, s *Store, kind api.Kind, n, projects int) {
	b.Helper()
	spec := api.Encode(map[string]any{"image": "img-debian-13", "flavor": "flv-small", "userData": "#cloud-config\n" + fmt.Sprintf("%0400d", 0)})
	status := api.Encode(map[string]any{"phase": "Running", "node": "nod-1", "addresses": []string{"10.0.0.1"}, "pad": fmt.Sprintf("%0300d", 0)})
	for done := 0; done < n; {
		var cmds []api.Command
		for ; done < n && len(cmds) < 500; done++ {
			id := fmt.Sprintf("%s-%06d", kind, done)
			cmds = append(cmds, api.Command{Op: api.OpPutSpec, Kind: kind, ID: id, Name: id, Project: fmt.Sprintf("prj-%d", done%projects), Data: spec},
				api.Command{Op: api.OpReport, Kind: kind, ID: id, Expect: api.AnyRevision, Data: status})
		}
		if _, err := s.Apply(b.Context(), api.Batch{Commands: cmds}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFollower measures linearizable reads on a follower, and a write through it
// followed by a read there, which waits until the follower knows that the write is
// committed.
func BenchmarkFollower(b *testing.B) {
	c := newCluster(b, 3, Options{})
	f := c.store(c.follower())
	if _, err := f.Apply(b.Context(), benchBatch(1)); err != nil {
		b.Fatal(err)
	}
	for _, clients := range []int{1, 64} {
		b.Run(fmt.Sprintf("get/clients=%d", clients), func(b *testing.B) {
			var n atomic.Int64
			var all sync.WaitGroup
			for range clients {
				all.Go(func() {
					for n.Add(1) <= int64(b.N) {
						if _, err := f.Get(context.Background(), api.KindFlavor, "flv-1"); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "reads/s")
		})
	}
	b.Run("write-then-get", func(b *testing.B) {
		for n := range b.N {
			if _, err := f.Apply(context.Background(), benchBatch(int64(n))); err != nil {
				b.Fatal(err)
			}
			if _, err := f.Get(context.Background(), api.KindFlavor, "flv-1"); err != nil && api.CodeOf(err) != api.CodeNotFound {
				b.Fatal(err)
			}
		}
	})
}
