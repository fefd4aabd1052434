package placement_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/placement"
)

const gib = 1 << 30

var now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func node(pool api.StoragePool) api.Node {
	pool.Name = api.PoolLocal
	return api.Node{Meta: api.Meta{ID: "n1", Name: "n1"}, Status: api.NodeStatus{Vcpus: 1 << 20, MemoryBytes: 1 << 50, SeenAt: now, Pools: []api.StoragePool{pool}}}
}

// Whatever is placed in whichever order: the allocations in a pool stay within its
// limit, a refused one would exceed it, a full pool refuses all, and the count equals
// placing one after the other.
func TestDiskProperties(t *testing.T) {
	placed, refused := 0, 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(21, seed))
		size := (1 + r.Int64N(200)) * gib
		pool := api.StoragePool{SizeBytes: size, ReserveBytes: r.Int64N(size/gib/2+1) * gib, FreeBytes: r.Int64N(3) * gib * 10, ImageBytes: r.Int64N(20) * gib}
		pool.LimitBytes = api.StorageLimit(pool.SizeBytes, pool.ReserveBytes, 100+50*r.Int64N(5))
		n, room := node(pool), placement.NewRoom(nil, nil, nil)
		promised := pool.ImageBytes
		for range 40 {
			bytes := (1 + r.Int64N(30)) * gib
			want := placement.Request{VCPUs: 1, Memory: gib, Root: bytes, Disk: bytes}
			fit := room.OnNode(n, want, "", now)
			fits := pool.FreeBytes > 0 && promised+bytes <= pool.LimitBytes
			if fits != (fit.Why == "") || fits != (fit.Count > 0) {
				t.Fatalf("seed %d: %d bytes requested, %d allocated, pool %+v: fit %+v, want it to fit: %t", seed, bytes, promised, pool, fit, fits)
			}
			if !fits {
				refused++
				for _, number := range []string{api.FormatBytes(promised), api.FormatBytes(pool.LimitBytes), api.FormatBytes(pool.FreeBytes), api.FormatBytes(pool.ReserveBytes)} {
					if !strings.Contains(fit.Why, number) {
						t.Fatalf("seed %d: reason %q, want it to contain %s", seed, fit.Why, number)
					}
				}
				continue
			}
			if more := (pool.LimitBytes - promised) / bytes; fit.Count != more {
				t.Fatalf("seed %d: count of %d bytes = %d, want %d", seed, bytes, fit.Count, more)
			}
			room.AddDisk("n1", "", bytes)
			promised += bytes
			placed++
		}
		if placed > 0 && promised > max(pool.LimitBytes, pool.ImageBytes) {
			t.Fatalf("seed %d: allocated %d bytes, want at most %d", seed, promised, pool.LimitBytes)
		}
	}
	if placed < 1000 || refused < 1000 {
		t.Errorf("%d were placed and %d refused, want at least 1000 of each", placed, refused)
	}
}

// A node of an older version reports no limit; a disk that is stored elsewhere needs no
// space.
func TestDiskWithoutLimit(t *testing.T) {
	for name, c := range map[string]struct {
		pool  api.StoragePool
		bytes int64
	}{
		"a version before":        {api.StoragePool{SizeBytes: gib, FreeBytes: gib}, 100 * gib},
		"nothing is taken anew":   {api.StoragePool{SizeBytes: gib, LimitBytes: 1}, 0},
		"a volume without a size": {api.StoragePool{SizeBytes: gib, LimitBytes: 1}, -1},
	} {
		if count, why := placement.NewRoom(nil, nil, nil).OnDisk(node(c.pool), "", c.bytes); count != math.MaxInt64 || why != "" {
			t.Errorf("%s: OnDisk = %d, %q; want no limit", name, count, why)
		}
	}
}

func TestStorageLimit(t *testing.T) {
	for _, c := range []struct{ size, reserve, overcommit, want int64 }{
		{100 * gib, 10 * gib, 200, 180 * gib},
		{100 * gib, 0, 100, 100 * gib},
		{gib, 2 * gib, 200, 0},
		{0, 0, 200, 0},
	} {
		if got := api.StorageLimit(c.size, c.reserve, c.overcommit); got != c.want {
			t.Errorf("StorageLimit of %s = %d, want %d", fmt.Sprint(c), got, c.want)
		}
	}
}
