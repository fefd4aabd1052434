package soft_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// mbarrierStart makes an mbarrier of so many arrivals at %bar (generic) and %b.
func mbarrierStart(count string) string {
	return `.reg .b64 %bar, %s; .reg .b32 %b, %n2; .reg .pred %q; .shared .align 8 .b64 mb;
mov.u32 %b, mb; mov.u64 %bar, mb; cvta.shared.u64 %bar, %bar; setp.eq.u32 %q, %tid, 0;
@%q mbarrier.init.shared.b64 [%b], ` + count + `; bar.sync 0;
`
}

// Threads hand values over by mbarriers as in the oracle. The programs are those of
// randProg, whose 40 threads have registers and memory of their own.
func TestMBarriersAgainstOracle(t *testing.T) {
	for name, body := range map[string]string{
		"state": mbarrierStart("40") + `st.shared.b32 [%sa], %r0; mbarrier.arrive.shared.b64 %s, [%b];
W: mbarrier.test_wait.shared.b64 %q, [%b], %s; @!%q bra W;
xor.b32 %t, %tid, 1; mul.lo.u32 %t, %t, 64; mov.u32 %n2, sh; add.u32 %t, %t, %n2; ld.shared.b32 %r1, [%t];`,
		"parity": mbarrierStart("40") + `st.shared.b32 [%sa], %r0; mbarrier.arrive.release.cta.b64 %s, [%bar]; mov.u32 %n, 0;
W: mbarrier.try_wait.parity.shared::cta.b64 %q, [%b], 0, 1000; @!%q bra W;
st.shared.b32 [%sa+4], %r2; mbarrier.arrive.shared::cluster.b64 _, [%b], 1;
X: mbarrier.try_wait.parity.b64 %q, [%bar], 1; @!%q bra X;
xor.b32 %t, %tid, 8; min.u32 %t, %t, 39; mul.lo.u32 %t, %t, 64; mov.u32 %n2, sh; add.u32 %t, %t, %n2; ld.shared.b32 %r1, [%t]; ld.shared.b32 %r3, [%t+4];`,
		"one waits": mbarrierStart("39") + `@%q bra W; st.shared.b32 [%sa], %r0; mbarrier.arrive.shared.b64 %s, [%b]; bra E;
W: mbarrier.try_wait.parity.shared.b64 %q, [%b], 0; @!%q bra W; ld.shared.b32 %r1, [sh+640]; ld.shared.b32 %r2, [sh+2496];
E: bar.sync 0;`,
		"transactions": mbarrierStart("40") + `@%q mbarrier.expect_tx.relaxed.cta.shared.b64 [%b], 64; mbarrier.arrive.expect_tx.shared.b64 %s, [%b], 16;
mbarrier.test_wait.shared.b64 %p0, [%b], %s; bar.sync 0; mbarrier.test_wait.shared.b64 %p1, [%b], %s; bar.sync 0;
mbarrier.complete_tx.shared::cta.b64 [%b], 16; @%q mbarrier.complete_tx.shared.b64 [%b], 64; bar.sync 0; mbarrier.test_wait.shared.b64 %p2, [%b], %s;`,
		"drop": mbarrierStart("80") + `and.b32 %t, %tid, 3; setp.ne.u32 %c, %t, 0; @%c bra A; mbarrier.arrive_drop.shared.b64 %s, [%b], 2; bra E;
A: mbarrier.arrive.noComplete.shared.b64 %s, [%b], 2;
E: bar.sync 0; mbarrier.test_wait.shared.b64 %p0, [%b], %s; bar.sync 0; @%q mbarrier.arrive.shared.b64 %s, [%b], 59; @%q mbarrier.pending_count.b64 %r0, %s;
bar.sync 0; mbarrier.test_wait.parity.shared.b64 %p1, [%b], 1; bar.sync 0; @%q mbarrier.arrive_drop.shared.b64 %s, [%b]; @%q mbarrier.pending_count.b64 %r1, %s;
bar.sync 0; mbarrier.test_wait.parity.shared.b64 %p2, [%b], 1; bar.sync 0; @%q mbarrier.inval.shared.b64 [%b];`,
		"copies": mbarrierStart("40") + `cp.async.ca.shared.global [%sa], [%mem], 8; cp.async.mbarrier.arrive.shared.b64 [%b]; cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%b];
W: mbarrier.test_wait.parity.shared.b64 %q, [%b], 0; @!%q bra W; ld.shared.b64 %d0, [%sa];`,
	} {
		t.Run(name, func(t *testing.T) { differOnce(t, body+"\n") })
	}
}

// What a program does with an mbarrier that PTX gives no meaning ends the kernel.
func TestMBarrierFaults(t *testing.T) {
	for body, want := range map[string]string{
		"mbarrier.init.shared.b64 [mb], 0;":                                                 "mbarrier of 0 arrivals",
		"mbarrier.init.shared.b64 [mb], 1048576;":                                           "mbarrier of 1048576 arrivals",
		"mbarrier.init.shared.b64 [mb], 1; mbarrier.arrive.shared.b64 %d, [mb], 2;":         "2 arrivals at an mbarrier with 1 pending",
		"mbarrier.init.shared.b64 [mb], 1; mbarrier.expect_tx.shared.b64 [mb], 0x7fffffff;": "pending transactions",
		"mbarrier.init.b64 [%o], 1;":                                                        "not in shared memory",
		"mbarrier.init.shared.b64 [mb+4], 1;":                                               "misaligned",
		"mbarrier.init.shared.b64 [mb+4096], 1;":                                            "shared address",
	} {
		r := newRig(t, matrixHead+`.entry k(.param .u64 out) { .reg .b64 %o, %d; .shared .align 8 .b64 mb; ld.param.u64 %o, [out]; `+body+` ret; }`)
		out := r.buffer(make([]byte, 8))
		r.launch("k", [3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}, 0, out)
		if _, err := r.read(out, 8); err == nil || !strings.Contains(err.Error(), want) && !errors.Is(err, abi.ErrMisaligned) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
}
