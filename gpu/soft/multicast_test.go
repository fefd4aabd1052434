package soft_test

import (
	"bytes"
	"errors"
	"math/rand"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/device"
)

// multicastKernel returns a kernel in which block 0 of each cluster copies a range and a
// box to the blocks of a mask, at the same addresses of each, and each of them waits at
// its own mbarrier and writes what it got.
func multicastKernel() string {
	return matrixHead + `.visible .entry k(.param .align 64 .b8 map[128], .param .u64 from, .param .u64 to, .param .u32 mask) {
.shared .align 1024 .b8 box[1024]; .shared .align 16 .b8 range[256]; .shared .align 8 .b64 bar;
.reg .b16 %mask; .reg .b32 %r<12>; .reg .b64 %m, %from, %to, %x, %y; .reg .pred %p0, %p1, %p2;
mov.b64 %m, map; cvta.param.u64 %m, %m; ld.param.u64 %from, [from]; ld.param.u64 %to, [to]; ld.param.u16 %mask, [mask];
mov.u32 %r0, %tid.x; mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, %ctaid.x; mov.u32 %r3, box; mov.u32 %r4, range; mov.u32 %r5, bar; mov.u32 %r6, 0;
setp.eq.u32 %p0, %r0, 0; @%p0 mbarrier.init.shared.b64 [%r5], 1; @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r5], 1280;
fence.mbarrier_init.release.cluster; barrier.cluster.arrive; barrier.cluster.wait;
setp.eq.and.u32 %p1, %r1, 0, %p0;
@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r4], [%from], 256, [%r5], %mask;
@%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%r3], [%m, {%r6, %r2}], [%r5], %mask;
cvt.u32.u16 %r7, %mask; shr.u32 %r7, %r7, %r1; and.b32 %r7, %r7, 1; setp.eq.u32 %p2, %r7, 0; @%p2 bra E;
W: mbarrier.try_wait.parity.shared.b64 %p1, [%r5], 0; @!%p1 bra W;
mad.lo.u32 %r3, %r0, 32, %r3; mad.lo.u32 %r4, %r0, 8, %r4; mad.lo.u32 %r8, %r2, 32, %r0; mad.wide.u32 %to, %r8, 16, %to;
ld.shared.b64 %x, [%r3]; ld.shared.b64 %y, [%r4]; st.global.v2.b64 [%to], {%x, %y};
E: barrier.cluster.arrive; barrier.cluster.wait; ret; }`
}

// TestMulticast checks copies to several blocks of a cluster, in clusters of several
// sizes and with masks that leave out blocks.
func TestMulticast(t *testing.T) {
	x := tensor{typ: 2, size: 4, dim: []int{32, 64}, pitch: []int{128}, box: []int{32, 8}, step: []int{1, 1}}
	data, from := make([]byte, x.bytes()), make([]byte, 256)
	rnd := rand.New(rand.NewSource(11))
	rnd.Read(data)
	rnd.Read(from)
	for _, c := range []struct{ cluster, mask uint32 }{{1, 1}, {2, 3}, {4, 0b1010}, {8, 0xff}, {8, 0b10010001}} {
		r := newRigOf(t, device.Options{VRAM: 64 << 20, SMs: 2, Capability: 90}, multicastKernel())
		m, err := x.encode(r, r.buffer(data))
		if err != nil {
			t.Fatal(err)
		}
		opaque := m.Bytes()
		const blocks = 16
		to := r.buffer(make([]byte, blocks*32*16))
		if err := r.clustered("k", [3]uint32{blocks, 1, 1}, [3]uint32{c.cluster, 1, 1}, 32, opaque[:], r.buffer(from), to, c.mask); err != nil {
			t.Fatalf("multicast in clusters of %d with mask %#b: %v", c.cluster, c.mask, err)
		}
		want := make([]byte, blocks*32*16)
		for b := range uint32(blocks) {
			if c.mask>>(b%c.cluster)&1 == 0 {
				continue
			}
			first := b / c.cluster * c.cluster // the block that copies
			for l := range uint32(32) {
				copy(want[(b*32+l)*16:], data[first*128+l*32:][:8])
				copy(want[(b*32+l)*16+8:], from[l*8:][:8])
			}
		}
		if got, err := r.read(to, len(want)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("multicast in clusters of %d with mask %#b: error %v, memory\n%x, want\n%x", c.cluster, c.mask, err, got, want)
		}
	}
	r := newRigOf(t, device.Options{VRAM: 64 << 20, SMs: 2, Capability: 90}, multicastKernel())
	m, err := x.encode(r, r.buffer(data))
	if err != nil {
		t.Fatal(err)
	}
	opaque := m.Bytes()
	if err := r.clustered("k", [3]uint32{2, 1, 1}, [3]uint32{2, 1, 1}, 32, opaque[:], r.buffer(from), r.buffer(make([]byte, 1024)), uint32(0b100)); !errors.Is(err, abi.ErrIllegalAddress) {
		t.Errorf("multicast to a block outside of the cluster: error %v, want %v", err, abi.ErrIllegalAddress)
	}
}
