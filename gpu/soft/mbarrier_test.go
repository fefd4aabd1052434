package soft_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/exec"
)

// mbarrierStart returns the creation of an mbarrier with count arrivals at %bar
// (generic) and %b. The fence makes it, and what threads have stored to shared memory,
// visible to asynchronous copies.
func mbarrierStart(count string) string {
	return `.reg .b64 %bar, %s; .reg .b32 %b, %n2; .reg .pred %q; .shared .align 8 .b64 mb;
mov.u32 %b, mb; mov.u64 %bar, mb; cvta.shared.u64 %bar, %bar; setp.eq.u32 %q, %thread, 0;
@%q mbarrier.init.shared.b64 [%b], ` + count + `; fence.proxy.async; bar.sync 0;
`
}

// mbarrierWait returns a loop that waits for the end of a phase.
func mbarrierWait(phase int) string {
	return fmt.Sprintf("W%d: mbarrier.try_wait.parity.shared.b64 %%q, [%%b], %d; @!%%q bra W%d;\n", phase, phase%2, phase)
}

// TestMBarriersAgainstOracle has threads pass values to each other with mbarriers. The
// programs are those of randProg, whose 40 threads have their own registers and memory.
func TestMBarriersAgainstOracle(t *testing.T) {
	for name, body := range map[string]string{
		"state": mbarrierStart("40") + `st.shared.b32 [%sa], %r0; mbarrier.arrive.shared.b64 %s, [%b];
W: mbarrier.test_wait.shared.b64 %q, [%b], %s; @!%q bra W;
xor.b32 %t, %thread, 1; mul.lo.u32 %t, %t, 64; mov.u32 %n2, sh; add.u32 %t, %t, %n2; ld.shared.b32 %r1, [%t];`,
		"parity": mbarrierStart("40") + `st.shared.b32 [%sa], %r0; mbarrier.arrive.release.cta.b64 %s, [%bar]; mov.u32 %n, 0;
W: mbarrier.try_wait.parity.shared::cta.b64 %q, [%b], 0, 1000; @!%q bra W;
st.shared.b32 [%sa+4], %r2; mbarrier.arrive.shared::cluster.b64 _, [%b], 1;
X: mbarrier.try_wait.parity.b64 %q, [%bar], 1; @!%q bra X;
xor.b32 %t, %thread, 8; min.u32 %t, %t, 39; mul.lo.u32 %t, %t, 64; mov.u32 %n2, sh; add.u32 %t, %t, %n2; ld.shared.b32 %r1, [%t]; ld.shared.b32 %r3, [%t+4];`,
		"one waits": mbarrierStart("39") + `@%q bra W; st.shared.b32 [%sa], %r0; mbarrier.arrive.shared.b64 %s, [%b]; bra E;
W: mbarrier.try_wait.parity.shared.b64 %q, [%b], 0; @!%q bra W; ld.shared.b32 %r1, [sh+640]; ld.shared.b32 %r2, [sh+2496];
E: bar.sync 0;`,
		"transactions": mbarrierStart("40") + `@%q mbarrier.expect_tx.relaxed.cta.shared.b64 [%b], 64; mbarrier.arrive.expect_tx.shared.b64 %s, [%b], 16;
mbarrier.test_wait.shared.b64 %p0, [%b], %s; bar.sync 0; mbarrier.test_wait.shared.b64 %p1, [%b], %s; bar.sync 0;
mbarrier.complete_tx.shared::cta.b64 [%b], 16; @%q mbarrier.complete_tx.shared.b64 [%b], 64; bar.sync 0; mbarrier.test_wait.shared.b64 %p2, [%b], %s;`,
		"drop": mbarrierStart("81") + `and.b32 %t, %thread, 3; setp.ne.u32 %c, %t, 0; @%c bra A; mbarrier.arrive_drop.shared.b64 %s, [%b], 2; bra E;
A: mbarrier.arrive.noComplete.shared.b64 %s, [%b], 2;
E: bar.sync 0; mbarrier.test_wait.shared.b64 %p3, [%b], %s; bar.sync 0; @%q mbarrier.arrive.shared.b64 _, [%b]; bar.sync 0;
mbarrier.test_wait.shared.b64 %p0, [%b], %s; bar.sync 0; @%q mbarrier.arrive.shared.b64 %s, [%b], 60; @%q mbarrier.pending_count.b64 %r0, %s;
bar.sync 0; mbarrier.test_wait.parity.shared.b64 %p1, [%b], 1; bar.sync 0; @%q mbarrier.arrive_drop.shared.b64 %s, [%b]; @%q mbarrier.pending_count.b64 %r1, %s;
bar.sync 0; mbarrier.test_wait.parity.shared.b64 %p2, [%b], 1; bar.sync 0; @%q mbarrier.inval.shared.b64 [%b];`,
		"copies": mbarrierStart("40") + `cp.async.ca.shared.global [%sa], [%mem], 8; cp.async.mbarrier.arrive.shared.b64 [%b]; cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%b];
W: mbarrier.test_wait.parity.shared.b64 %q, [%b], 0; @!%q bra W; ld.shared.b64 %d0, [%sa];`,
	} {
		t.Run(name, func(t *testing.T) { differOnce(t, body+"\n") })
	}
}

// TestMBarrierFaults checks that operations on an mbarrier that are undefined in PTX
// end the kernel.
func TestMBarrierFaults(t *testing.T) {
	for body, want := range map[string]string{
		"mbarrier.init.shared.b64 [mb], 0;":                                                 "mbarrier.init with 0 arrivals",
		"mbarrier.init.shared.b64 [mb], 1048576;":                                           "mbarrier.init with 1048576 arrivals",
		"mbarrier.init.shared.b64 [mb], 1; mbarrier.arrive.shared.b64 %d, [mb], 2;":         "2 arrivals at an mbarrier, want 1 to the 1 that are pending",
		"mbarrier.init.shared.b64 [mb], 1; mbarrier.expect_tx.shared.b64 [mb], 0x7fffffff;": "pending transactions",
		"mbarrier.init.b64 [%o], 1;":                                                        "want one in shared memory",
		"mbarrier.init.shared.b64 [mb+4], 1;":                                               "misaligned",
		"mbarrier.init.shared.b64 [mb+4096], 1;":                                            "shared address",
	} {
		r := newRig(t, matrixHead+`.entry k(.param .u64 out) { .reg .b64 %o, %d; .shared .align 8 .b64 mb; ld.param.u64 %o, [out]; `+body+` ret; }`)
		out := r.buffer(make([]byte, 8))
		r.launch("k", [3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}, 0, out)
		if _, err := r.read(out, 8); err == nil || !strings.Contains(err.Error(), want) && !errors.Is(err, abi.ErrMisaligned) {
			t.Errorf("%s: kernel error = %v, want %q", body, err, want)
		}
	}
}

// TestAsyncStoresAgainstOracle checks that st.async and red.async write to shared
// memory and complete transactions.
func TestAsyncStoresAgainstOracle(t *testing.T) {
	const form = ".shared::cluster.mbarrier::complete_tx::bytes."
	reduce, bytes := "", 0
	for i, op := range []string{"inc.u32", "dec.u32", "min.u32", "min.s32", "max.u32", "max.s32", "add.u32", "add.s32", "and.b32", "or.b32", "xor.b32"} {
		reduce += fmt.Sprintf("red.async.relaxed.cluster%s%s [%%sa+%d], %%r%d, [%%b];\n", form, op, 4*i, i%8)
		bytes += 4
	}
	cases := map[string]string{
		"store": mbarrierStart("40") + `mbarrier.arrive.expect_tx.shared.b64 _, [%b], 52;
st.async.weak` + form + `b32 [%sa], %r1, [%b]; st.async` + form + `v2.f32 [%sa+8], {%r2, %r3}, [%b]; st.async` + form + `v4.s32 [%sa+16], {%r0, %r1, %r2, %r3}, [%b];
st.async` + form + `u64 [%sa+32], %d1, [%b]; st.async` + form + `v2.b64 [%sa+48], {%d2, %d3}, [%b];
` + mbarrierWait(0) + `ld.shared.v2.b64 {%d0, %d1}, [%sa]; ld.shared.v2.b64 {%d2, %d3}, [%sa+16]; ld.shared.v2.b64 {%d4, %d5}, [%sa+48];`,
		"store by generic address": mbarrierStart("40") + `mbarrier.arrive.expect_tx.shared.b64 _, [%b], 24;
cvt.u64.u32 %wide, %sa; cvta.shared.u64 %wide, %wide; st.async.mbarrier::complete_tx::bytes.v2.u64 [%wide+32], {%d4, %d5}, [%bar]; st.async` + form + `f64 [%sa], 0d3ff0000000000000, [%b];
` + mbarrierWait(0) + `ld.shared.v2.b64 {%d0, %d1}, [%sa]; ld.shared.v2.b64 {%d2, %d3}, [%sa+32];`,
		"reduce": mbarrierStart("40") + fmt.Sprintf("mbarrier.arrive.expect_tx.shared.b64 _, [%%b], %d;\n", bytes+8) + reduce +
			"red.async.relaxed.cluster" + form + "add.u64 [%sa+48], %d0, [%b];\n" + mbarrierWait(0) + "ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [%sa]; ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%sa+32]; ld.shared.b64 %d1, [%sa+16]; ld.shared.b64 %d2, [%sa+48];",
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) { differInCluster(t, ptxHead, cases[name]+"\n") })
	}
}

// TestAsyncStoresRefused checks that forms that PTX does not have are refused.
func TestAsyncStoresRefused(t *testing.T) {
	for _, inst := range []string{
		"st.async.shared::cluster.b32 [%r0], %r1, [%r2];", "st.async.shared::cluster.mbarrier::complete_tx::bytes.b16 [%r0], %r1, [%r2];",
		"st.async.global.mbarrier::complete_tx::bytes.b32 [%d0], %r1, [%r2];", "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r0], %d0, [%r2], %r1;",
		"st.async.shared::cluster.mbarrier::complete_tx::bytes [%r0], %r1, [%r2];",
		"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.f32 [%r0], %r1, [%r2];",
	} {
		if log, err := refusal(t, matrixHead+".entry k() {\n.reg .b32 %r<4>; .reg .b64 %d<2>; .reg .pred %p<1>;\n"+inst+"\n}"); !errors.Is(err, abi.ErrNoBinaryForGPU) || !strings.Contains(log, inst) {
			t.Errorf("%s: launch error %v, log %q; want %v and the instruction in the log", inst, err, log, abi.ErrNoBinaryForGPU)
		}
	}
}

// TestBulkCopiesAgainstOracle checks that bulk copies and reductions move bytes and
// complete transactions.
func TestBulkCopiesAgainstOracle(t *testing.T) {
	var shared strings.Builder // each is waited for, as their order is undefined otherwise
	for i, op := range []string{
		"add.u32", "add.s32", "add.u64", "inc.u32", "dec.u32", "min.u32", "min.s32", "max.u32", "max.s32", "and.b32", "or.b32", "xor.b32",
	} {
		shared.WriteString("mbarrier.arrive.expect_tx.shared.b64 _, [%b], 16; cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes." + op + " [%sa], [%sa+32], 16, [%b];\n" + mbarrierWait(i))
	}
	shared.WriteString("ld.shared.v2.b64 {%d0, %d1}, [%sa];\n")
	global := func(list ...string) (s string) {
		for _, op := range list {
			s += "cp.reduce.async.bulk.global.shared::cta.bulk_group." + op + " [%mem], [%sa+32], 32; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n"
		}
		return "fence.proxy.async;\n" + s
	}
	cases := map[string]string{
		"load": mbarrierStart("40") + `mbarrier.arrive.expect_tx.shared.b64 _, [%b], 48;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%sa], [%mem], 32, [%b];
createpolicy.fractional.L2::evict_first.b64 %s, 1.0; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%sa+48], [%mem+32], 16, [%b], %s;
` + mbarrierWait(0) + `ld.shared.v2.b64 {%d0, %d1}, [%sa+16]; ld.shared.v2.b64 {%d2, %d3}, [%sa+48];`,
		"load to shared::cta": mbarrierStart("40") + `mbarrier.arrive.expect_tx.shared.b64 _, [%b], 32;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%sa], [%mem], 32, [%b];
` + mbarrierWait(0) + `ld.shared.v2.b64 {%d0, %d1}, [%sa]; ld.shared.v2.b64 {%d2, %d3}, [%sa+16];`,
		"multicast": mbarrierStart("40") + `mbarrier.arrive.expect_tx.shared.b64 _, [%b], 16; .reg .b16 %mask; mov.b16 %mask, 1;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%sa], [%mem], 16, [%b], %mask;
` + mbarrierWait(0) + `ld.shared.v2.b64 {%d0, %d1}, [%sa];`,
		"shared copy": mbarrierStart("40") + `and.b32 %n, %r0, 16; add.u32 %n, %n, 16; mbarrier.arrive.expect_tx.shared.b64 _, [%b], %n;
cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%sa], [%sa+32], %n, [%b];
` + mbarrierWait(0) + `ld.shared.v2.b64 {%d0, %d1}, [%sa]; ld.shared.v2.b64 {%d2, %d3}, [%sa+16];`,
		"global store": `cp.async.bulk.prefetch.L2.global [%mem], 64; fence.proxy.async; cp.async.bulk.global.shared::cta.bulk_group [%mem+16], [%sa], 48;
cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0;`,
		"global reduce": global("add.u32", "add.s32", "add.u64", "inc.u32", "dec.u32", "min.u32", "min.s32", "min.u64", "min.s64", "max.u32", "max.s32", "max.u64", "max.s64",
			"and.b32", "or.b32", "xor.b32", "and.b64", "or.b64", "xor.b64"),
		"global reduce f16":  global("add.noftz.f16", "min.f16", "max.f16"),
		"global reduce bf16": global("add.noftz.bf16", "min.bf16", "max.bf16"),
		"global reduce f32":  global("add.f32"),
		"global reduce f64":  global("add.f64"),
		"shared reduce":      mbarrierStart("40") + shared.String(),
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) { // sorted, as a fault makes a GPU unusable
		body, head := cases[name], matrixHead
		if name == "load to shared::cta" {
			head = strings.Replace(head, ".version 8.4", ".version 8.6", 1)
		}
		t.Run(name, func(t *testing.T) { differInCluster(t, head, body+"\n") })
	}
}

// differInCluster is differOnceOf for a block that is a cluster by itself, as
// instructions that write to the shared memory of clusters require.
func differInCluster(t *testing.T, head, body string) {
	t.Helper()
	g := &randProg{rnd: rand.New(rand.NewSource(0)), head: head}
	const end = ".param .u64 scratch) "
	src := strings.Replace(g.program(func() { g.out.WriteString(body) }), end, end+".explicitcluster .reqnctapercluster 1 ", 1)
	differ(t, randEngines(t, exec.Interpreted, exec.Compiled), src, 0, 1, 2, 3)
}

// TestBulkCopyFaults checks that a bulk copy cannot leave its memory.
func TestBulkCopyFaults(t *testing.T) {
	for args, want := range map[string]error{
		"[sh], [%o], 8": abi.ErrMisaligned, "[sh], [%o], 48": abi.ErrIllegalAddress, "[sh+8], [%o], 16": abi.ErrMisaligned,
		"[sh], [%o+4096], 16": abi.ErrIllegalAddress, "[sh+64], [%o], 32": abi.ErrIllegalAddress, "[sh], [%o], 0xfffffff0": abi.ErrIllegalAddress,
	} {
		r := newRig(t, matrixHead+`.entry k(.param .u64 out) { .reg .b64 %o; .shared .align 16 .b8 sh[64]; .shared .align 8 .b64 mb;
ld.param.u64 %o, [out]; mbarrier.init.shared.b64 [mb], 1; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes `+args+`, [mb]; ret; }`)
		out := r.buffer(make([]byte, 32))
		r.launch("k", [3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}, 0, out)
		if _, err := r.read(out, 8); !errors.Is(err, want) {
			t.Errorf("bulk copy %s: error %v, want %v", args, err, want)
		}
	}
}
