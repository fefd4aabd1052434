package soft_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/device"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// clusterRig returns a device with clusters and the kernels of cluster.cu, of which
// narrow requires clusters of 4.
func clusterRig(t *testing.T) *rig {
	t.Helper()
	const end = "narrow_param_1\n)"
	src := kernelFile(t, "cluster")
	if strings.Count(src, end) != 1 {
		t.Fatalf("end of the parameters of kernel narrow: found %d times in cluster.ptx, want once", strings.Count(src, end))
	}
	return newRigOf(t, device.Options{VRAM: 64 << 20, SMs: 2, Capability: 90}, strings.Replace(src, end, end+"\n.explicitcluster .reqnctapercluster 4", 1))
}

// clustered launches a kernel in clusters, waits for it and returns its error.
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
		r.expect(c, len(a), func(i int) uint32 { return uint32(a[i] + 211000) })
		r.expect(counts, len(sums), func(i int) uint32 { return uint32(sums[i]) })
	}
}

// TestAsyncStoresInCluster has each thread store to the next block of its cluster and
// add to a word there, with the bytes for that block's mbarrier, and wait at its own.
func TestAsyncStoresInCluster(t *testing.T) { passAround(t, 2, 3, 4, 1) }

// TestAsyncStoresOfOneBlock checks that a block that is launched without clusters is a
// cluster of one.
func TestAsyncStoresOfOneBlock(t *testing.T) { passAround(t, 0) }

// passAround launches the kernel with the stores in clusters of these sizes; 0 means
// without clusters.
func passAround(t *testing.T, clusters ...int) {
	t.Helper()
	r := clusterRig(t)
	r.load(matrixHead + `.visible .entry pass(.param .u64 a, .param .u64 c) {
.shared .align 8 .b64 bar; .shared .align 4 .b32 sum; .shared .align 8 .b8 to[512];
.reg .b32 %r<12>; .reg .b64 %d<5>; .reg .pred %p<3>;
ld.param.u64 %d0, [a]; ld.param.u64 %d1, [c]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mad.lo.u32 %r2, %r1, 64, %r0;
mad.wide.u32 %d0, %r2, 8, %d0; mad.wide.u32 %d1, %r2, 8, %d1; ld.global.b64 %d2, [%d0];
setp.eq.u32 %p0, %r0, 0; @%p0 mbarrier.init.shared.b64 [bar], 1; @%p0 st.shared.u32 [sum], 0;
@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 768; // 64 threads, 8 bytes and 4
fence.mbarrier_init.release.cluster; barrier.cluster.arrive; barrier.cluster.wait;
mov.u32 %r3, %cluster_ctarank; mov.u32 %r4, %cluster_nctarank; add.u32 %r3, %r3, 1; rem.u32 %r3, %r3, %r4;
mov.u32 %r5, to; mad.lo.u32 %r5, %r0, 8, %r5; mapa.shared::cluster.u32 %r6, %r5, %r3; mov.u32 %r7, bar; mapa.shared::cluster.u32 %r7, %r7, %r3;
mov.u32 %r8, sum; mapa.shared::cluster.u32 %r8, %r8, %r3;
st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%r6], %d2, [%r7];
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r8], %r2, [%r7];
W: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra W;
ld.shared.v2.b32 {%r9, %r10}, [%r5]; ld.shared.u32 %r11, [sum]; add.u32 %r10, %r10, %r11; st.global.v2.b32 [%d1], {%r9, %r10};
barrier.cluster.arrive; barrier.cluster.wait; ret; }`)
	const blocks, threads = 12, 64
	a := numbers(2 * blocks * threads)
	for _, cluster := range clusters {
		c, size := r.buffer(make([]byte, 4*len(a))), [3]uint32{uint32(cluster), 1, 1}
		if cluster == 0 {
			cluster, size = 1, [3]uint32{}
		}
		if err := r.clustered("pass", [3]uint32{blocks, 1, 1}, size, threads, r.buffer(raw(a)), c); err != nil {
			t.Fatalf("kernel pass in clusters of %v: %v", size, err)
		}
		r.expect(c, len(a), func(i int) uint32 {
			block := i / 2 / threads
			from := block/cluster*cluster + (block+cluster-1)%cluster
			v := a[from*2*threads+i%(2*threads)]
			if i%2 == 1 {
				v += int32(threads*threads*from + threads*(threads-1)/2)
			}
			return uint32(v)
		})
	}
}

// TestClusterNarrow checks that a kernel may require a cluster, and that ended threads
// are not waited for.
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
			t.Errorf("launch of %s with grid %d in clusters %d: error %v, want %v", x.kernel, x.grid, x.cluster, err, abi.ErrInvalidClusterSize)
		}
	}
	if err := r.clustered("outside", [3]uint32{4, 1, 1}, [3]uint32{4, 1, 1}, 1, c); !errors.Is(err, abi.ErrIllegalAddress) {
		t.Errorf("access to a block outside of the cluster: error %v, want %v", err, abi.ErrIllegalAddress)
	}
}
