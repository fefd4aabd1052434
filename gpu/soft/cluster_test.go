package soft_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/device"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/installer/dev/patience"
)

// clusterRig is a device with clusters and the kernels of cluster.cu, of which narrow
// requires clusters of 4.
func clusterRig(t *testing.T) *rig {
	t.Helper()
	d, err := device.New(device.Options{VRAM: 64 << 20, SMs: 2, Capability: 90})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	c, err := d.NewContext(0, nil, testWindow)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{TB: t, c: c, funcs: map[string]worker.Function{}}
	const end = "narrow_param_1\n)"
	src := kernelFile(t, "cluster")
	if strings.Count(src, end) != 1 {
		t.Fatal("kernel narrow of cluster.ptx has no parameters")
	}
	r.load(strings.Replace(src, end, end+"\n.explicitcluster .reqnctapercluster 4", 1))
	return r
}

// clustered launches a kernel in clusters, and waits for it.
func (r *rig) clustered(name string, grid, cluster [3]uint32, block uint32, args ...any) error {
	r.Helper()
	done := make(chan error, 1)
	l := worker.Launch{Grid: grid, Block: [3]uint32{block, 1, 1}, Cluster: cluster, Params: pack(args...)}
	if err := r.c.Launch(nil, r.funcs[name], l, func(err error) { done <- err }); err != nil {
		return err
	}
	return patience.Receive(r.TB, time.Minute, "the kernel ends", done)
}

func TestClusterPlaces(t *testing.T) {
	r := clusterRig(t)
	grid := [3]uint32{6, 4, 4}
	for _, cluster := range [][3]uint32{{}, {1, 1, 1}, {2, 1, 1}, {3, 2, 1}, {2, 2, 2}, {1, 4, 2}} {
		c := r.buffer(make([]byte, 64*6*4*4))
		if err := r.clustered("places", grid, cluster, 32, c); err != nil {
			t.Fatal(err)
		}
		size := cluster
		if size == [3]uint32{} {
			size = [3]uint32{1, 1, 1}
		}
		r.expect(c, 16*6*4*4, func(i int) uint32 {
			block := uint32(i / 16)
			at := [3]uint32{block % 6, block / 6 % 4, block / 24}
			switch k := i % 16; {
			case k < 3:
				return at[k] % size[k]
			case k < 6:
				return size[k-3]
			case k < 9:
				return at[k-6] / size[k-6]
			case k < 12:
				return grid[k-9] / size[k-9]
			case k == 12:
				return at[0]%size[0] + size[0]*(at[1]%size[1]+size[1]*(at[2]%size[2]))
			case k == 13:
				return size[0] * size[1] * size[2]
			}
			return 0
		})
	}
}

func TestClusterMemory(t *testing.T) {
	r := clusterRig(t)
	const rounds = 5
	for _, size := range [][3]int{{1, 1, 32}, {4, 2, 64}, {8, 8, 256}, {40, 4, 100}, {400, 8, 32}} {
		blocks, cluster, threads := size[0], size[1], size[2]
		a := numbers(blocks * threads)
		c, counts := r.buffer(make([]byte, 4*len(a))), r.buffer(make([]byte, 4*blocks/cluster))
		if err := r.clustered("ring", [3]uint32{uint32(blocks), 1, 1}, [3]uint32{uint32(cluster), 1, 1}, uint32(threads), r.buffer(raw(a)), c, counts, rounds); err != nil {
			t.Fatal(err)
		}
		sums := make([]int32, blocks/cluster)
		for k := range rounds {
			next := make([]int32, len(a))
			for i := range a {
				block, l := i/threads, i%threads
				from := block/cluster*cluster + (block+1)%cluster
				x := a[from*threads+(l+k)%threads]
				next[i] = a[i]*3 + x
				sums[block/cluster] += x & 7
			}
			a = next
		}
		r.expect(c, len(a), func(i int) uint32 { return uint32(a[i] + 11000) })
		r.expect(counts, len(sums), func(i int) uint32 { return uint32(sums[i]) })
	}
}

// A kernel may require a cluster; threads that have ended are not waited for.
func TestClusterNarrow(t *testing.T) {
	r := clusterRig(t)
	const blocks, threads = 12, 64
	a := numbers(blocks * threads)
	for _, cluster := range [][3]uint32{{}, {4, 1, 1}} {
		c := r.buffer(make([]byte, 4*len(a)))
		if err := r.clustered("narrow", [3]uint32{blocks, 1, 1}, cluster, threads, r.buffer(raw(a)), c); err != nil {
			t.Fatal(err)
		}
		r.expect(c, len(a), func(i int) uint32 {
			peer := i/threads ^ 1
			v := a[peer*threads+i%threads] + int32(1000000*(peer%4))
			if i%2 == 0 {
				v += a[i] + 5
			}
			return uint32(v)
		})
	}
}

func TestClusterErrors(t *testing.T) {
	r := clusterRig(t)
	c := r.buffer(make([]byte, 1<<16))
	for _, x := range []struct {
		kernel        string
		grid, cluster [3]uint32
	}{
		{"places", [3]uint32{4, 1, 1}, [3]uint32{3, 1, 1}},
		{"places", [3]uint32{4, 1, 1}, [3]uint32{4, 0, 1}},
		{"places", [3]uint32{16, 1, 1}, [3]uint32{16, 1, 1}},
		{"places", [3]uint32{4, 4, 4}, [3]uint32{4, 4, 4}},
		{"narrow", [3]uint32{4, 1, 1}, [3]uint32{2, 1, 1}},
		{"narrow", [3]uint32{6, 1, 1}, [3]uint32{}},
	} {
		if err := r.clustered(x.kernel, x.grid, x.cluster, 32, c, c); !errors.Is(err, abi.ErrInvalidClusterSize) {
			t.Errorf("%s with a grid %d in clusters %d: %v", x.kernel, x.grid, x.cluster, err)
		}
	}
	if err := r.clustered("outside", [3]uint32{4, 1, 1}, [3]uint32{4, 1, 1}, 1, c); !errors.Is(err, abi.ErrIllegalAddress) {
		t.Errorf("an address of a block that the cluster has not: %v", err)
	}
}
