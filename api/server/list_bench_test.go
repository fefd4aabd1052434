package server

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// pagesOf lists objects in pages, as a store does.
type pagesOf []api.Object

func (p pagesOf) List(_ context.Context, q api.ListQuery) (api.ListPage, error) {
	from := 0
	if q.Continue != "" {
		_, _ = fmt.Sscan(q.Continue, &from)
	}
	to := min(from+q.Limit, len(p))
	page := api.ListPage{Items: p[from:to]}
	if to < len(p) {
		page.Continue = fmt.Sprint(to)
	}
	return page, nil
}

// BenchmarkSortedPage measures sorting 20,000 instances by a field for one page of 25,
// without the store's reading of them.
func BenchmarkSortedPage(b *testing.B) {
	objects := make(pagesOf, 20_000)
	for i := range objects {
		objects[i] = api.Object{Kind: api.KindInstance, Meta: api.Meta{ID: fmt.Sprintf("ins-%012x", i*7919%20_000), CreatedAt: time.Unix(int64(i), 0)},
			Spec:       api.Encode(api.InstanceSpec{Flavor: "flv-000000000001", Image: "img-000000000001", Power: api.PowerRunning}),
			Assignment: api.Encode(api.InstanceAssignment{Node: "node-000000000001", Vcpus: 4, MemoryBytes: int64(i%64) << 30, Ports: []api.InstancePort{{Address4: "10.0.0.2"}}}),
			Status:     api.Encode(api.InstanceStatus{Phase: api.InstanceRunning, Node: "node-000000000001"})}
	}
	for _, sort := range []api.ListSort{"-createdAt", "-assignment.memoryBytes", "state"} {
		b.Run(string(sort), func(b *testing.B) {
			order, err := api.ParseOrder(api.KindInstance, sort)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				page, err := sortedPage(b.Context(), objects, api.ListQuery{Limit: 25}, order, func(api.Object) bool { return true })
				if err != nil || page.total != int64(len(objects)) || len(page.Items) != 25 {
					b.Fatalf("sortedPage returned %d items of %d, error %v; want 25 of %d", len(page.Items), page.total, err, len(objects))
				}
			}
		})
	}
}
