package soft_test

import (
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/device"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// FuzzModuleLoad checks that any image is either loaded or refused with an error and a
// log.
func FuzzModuleLoad(f *testing.F) {
	for _, file := range []string{"basic", "flow", "block", "print"} {
		src := kernelFile(f, file)
		parts := strings.Split(src, ".visible .entry")
		for _, p := range parts[1:] {
			f.Add([]byte(ptxHead + ".visible .entry" + p))
		}
	}
	f.Add([]byte(kernelFile(f, "print")))
	f.Add([]byte("\x50\xed\x55\xba\x01\x00\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	calls := ptxHead + threeFunctions + `.extern .func (.param .u64 r) malloc (.param .u64 n);` + callKernel(
		`{ .param .u64 n, r; call (r), malloc, (n); } mov.u64 %d2, triple; { .param .u32 a, b; call (b), %d2, (a), P; } P: .callprototype _;`)
	f.Add([]byte(calls))
	f.Add([]byte(ptxHead + `.func (.reg .u32 %r) f (.reg .u32 %n) { call (%r), f, (%n); ret; }` + callKernel(`call (%out), f, (%thread);`)))
	f.Add((&abi.LinkImage{Objects: []abi.LinkObject{
		{Type: 1, Name: "calls", Image: []byte(calls)}, {Type: 1, Name: "malloc", Image: []byte(ptxHead + ".weak .func (.param .u64 r) malloc (.param .u64 n) { ret; }")},
	}}).Append(nil))
	for _, inst := range []string{
		"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r0, %r1, %r2, %r3}, {%r0, %r1, %r2, %r3}, {%r0, %r1}, {%r0, %r1, %r2, %r3};",
		"wmma.load.a.sync.aligned.row.m8n8k32.s4 {%r0}, [%d0], %r1;", "wmma.store.d.sync.aligned.col.m8n8k4.f64 [%d0], {%d0, %d1};",
		"ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r0, %r1}, [%r2];", "stmatrix.sync.aligned.m8n8.x1.b16 [%d0], %r0;", "movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r1;",
		"wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r0, %r1}, %d0, %d1, 1, 1, -1, 0, 1;", "elect.sync _|%p0, -1;", "redux.sync.min.abs.f32 %r0, %r1, -1;",
		"mbarrier.arrive.expect_tx.shared.b64 %d0, [%r0], 16;", "mbarrier.try_wait.parity.b64 %p0, [%d0], %r0, 10;", "cp.async.mbarrier.arrive.noinc.b64 [%d0];",
		"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r0], [%d0], 16, [%r1], %d1;",
		"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%d0], [%r0], 16;",
		"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%d0, {%r1, %r2}], [%r3];",
		"cp.reduce.async.bulk.tensor.1d.global.shared::cta.min.bulk_group [%d0, {%r1}], [%r0];", "cvt.rn.satfinite.e4m3x2.f32 %h0, %r0, %r1;",
		"mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r0, %r1, %r2, %r3}, {%r0, %r1}, {%r0, %r1}, {%r0, %r1, %r2, %r3}, %r0, 3;",
		"wgmma.mma_async.sp.sync.aligned.m64n8k32.f16.f16.f16 {%r0, %r1}, %d0, %d1, %r0, 1, 1, 1, -1, 0, 1;",
		"cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster [%r0], [%d0, {%r1, %r2, %r3}], [%r3], {%h0}, %h1;",
		"tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r0], 4, %r1;", "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d0], [%r0], 128;",
		"alloca.u64 %d0, %d1, 16;", "stackrestore.u32 %r0;", "vmad.s32.u32.s32.sat.shr7 %r0, -%r1.h1, %r2.b0, %r3;",
	} {
		f.Add([]byte(matrixHead + ".entry k() { .reg .b16 %h<2>; .reg .b32 %r<4>; .reg .b64 %d<2>; .reg .pred %p<1>;\n" + inst + " }"))
	}
	d, err := device.New(device.Options{VRAM: 64 << 20})
	if err != nil {
		f.Fatal(err)
	}
	c, err := d.NewContext(0, nil, testWindow)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := d.Close(); err != nil {
			f.Error(err)
		}
	})
	f.Fuzz(func(t *testing.T, image []byte) {
		m, _, info, err := c.ModuleLoad(image, worker.ModuleOptions{})
		if err != nil {
			if info.ErrorLog == "" && !strings.Contains(err.Error(), "MEMORY") {
				t.Errorf("load failed with %v and an empty log, want the reason in the log", err)
			}
			return
		}
		if err := c.ModuleUnload(m); err != nil {
			t.Error(err)
		}
	})
}
