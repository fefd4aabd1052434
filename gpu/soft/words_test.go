package soft_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/device"
	"github.com/basalt-gpu/basalt/gpu/soft/exec"
)

// wordsKernel loads four consecutive words of shared memory for each thread by four
// instructions, from places that are apart, and stores their sums with weights. The
// register with the address is changed between them by %s.
const wordsKernel = ptxHead + `.entry k(.param .u64 out, .param .u32 apart) {
.reg .b32 %%r<24>; .reg .b64 %%rd<4>; .reg .pred %%p, %%q; .shared .align 16 .b8 t[8192];
ld.param.u64 %%rd1, [out]; ld.param.u32 %%r1, [apart];
mov.u32 %%r2, %%tid.x; mul.wide.u32 %%rd2, %%r2, 4; add.u64 %%rd1, %%rd1, %%rd2;
mov.u32 %%r3, t; mov.u32 %%r4, 0;
F: shl.b32 %%r5, %%r4, 7; add.u32 %%r5, %%r5, %%r2; shl.b32 %%r6, %%r5, 2; add.u32 %%r6, %%r6, %%r3; st.shared.u32 [%%r6], %%r5;
add.u32 %%r4, %%r4, 1; setp.lt.u32 %%p, %%r4, 16; @%%p bra F;
bar.sync 0; mov.u32 %%r4, 0; mov.u32 %%r20, 0;
L: mul.lo.u32 %%r7, %%r2, %%r1; add.u32 %%r7, %%r7, %%r4; shl.b32 %%r7, %%r7, 2; add.u32 %%r7, %%r7, %%r3;
bra M;
M: %s
bra N;
N: mad.lo.u32 %%r20, %%r10, 1, %%r20; mad.lo.u32 %%r20, %%r11, 10, %%r20; mad.lo.u32 %%r20, %%r12, 100, %%r20; mad.lo.u32 %%r20, %%r13, 1000, %%r20;
bar.sync 0; add.u32 %%r4, %%r4, 1; setp.lt.u32 %%p, %%r4, 12; @%%p bra L;
st.global.u32 [%%rd1], %%r20; ret; }`

// TestConsecutiveWords checks four loads of consecutive words for each lane, which machine
// code combines (native/quad.go): registers that are stored at the end of a run were lost
// when the last of the loads was its last instruction.
func TestConsecutiveWords(t *testing.T) {
	const threads = 128
	for name, loads := range map[string]string{
		"in order":   "ld.shared.u32 %r10, [%r7]; ld.shared.u32 %r11, [%r7+4]; ld.shared.u32 %r12, [%r7+8]; ld.shared.u32 %r13, [%r7+12];",
		"computing":  "ld.shared.u32 %r10, [%r7]; add.u32 %r14, %r10, 1; ld.shared.u32 %r11, [%r7+4]; sub.u32 %r10, %r14, 1; ld.shared.u32 %r12, [%r7+8]; ld.shared.u32 %r13, [%r7+12];",
		"to one":     "ld.shared.u32 %r10, [%r7]; mov.u32 %r15, %r10; ld.shared.u32 %r10, [%r7+4]; mov.u32 %r11, %r10; ld.shared.u32 %r10, [%r7+8]; mov.u32 %r12, %r10; ld.shared.u32 %r10, [%r7+12]; mov.u32 %r13, %r10; mov.u32 %r10, %r15;",
		"unused":     "ld.shared.u32 %r11, [%r7]; ld.shared.u32 %r11, [%r7+4]; ld.shared.u32 %r12, [%r7+8]; ld.shared.u32 %r13, [%r7+12]; ld.shared.u32 %r10, [%r7];",
		"before":     "ld.shared.u32 %r13, [%r7+12]; ld.shared.u32 %r10, [%r7]; ld.shared.u32 %r11, [%r7+4]; ld.shared.u32 %r12, [%r7+8]; ld.shared.u32 %r13, [%r7+12];",
		"guarded":    "ld.shared.u32 %r10, [%r7]; setp.eq.u32 %q, %r1, 0; ld.shared.u32 %r11, [%r7+4]; @%q mov.u32 %r11, 5; ld.shared.u32 %r12, [%r7+8]; ld.shared.u32 %r13, [%r7+12];",
		"base last":  "ld.shared.u32 %r10, [%r7]; ld.shared.u32 %r11, [%r7+4]; ld.shared.u32 %r12, [%r7+8]; ld.shared.u32 %r7, [%r7+12]; mov.u32 %r13, %r7;",
		"base moved": "ld.shared.u32 %r10, [%r7]; ld.shared.u32 %r11, [%r7+4]; add.u32 %r7, %r7, 8; ld.shared.u32 %r12, [%r7]; ld.shared.u32 %r13, [%r7+4];",
		"more":       "ld.shared.u32 %r10, [%r7]; ld.shared.u32 %r11, [%r7+4]; ld.shared.u32 %r12, [%r7+8]; ld.shared.u32 %r13, [%r7+12]; ld.shared.u32 %r16, [%r7+16]; ld.shared.u32 %r17, [%r7+20]; ld.shared.u32 %r18, [%r7+24]; ld.shared.u32 %r19, [%r7+28];",
	} {
		for _, apart := range []int{5, 7, 9, 4} {
			t.Run(fmt.Sprint(name, " ", apart), func(t *testing.T) {
				r := newRigOf(t, device.Options{VRAM: 64 << 20, SMs: 1, Engine: exec.Compiled}, fmt.Sprintf(wordsKernel, loads))
				out := r.buffer(make([]byte, 4*threads))
				for range 12 {
					r.launch("k", [3]uint32{4, 1, 1}, [3]uint32{threads, 1, 1}, 0, out, apart)
				}
				got, err := r.read(out, 4*threads)
				if err != nil {
					t.Fatal(err)
				}
				for i := range threads {
					var want uint32
					for n := range 12 {
						at := uint32(i*apart + n)
						want += at + 10*(at+1) + 100*(at+2) + 1000*(at+3)
					}
					if v := binary.LittleEndian.Uint32(got[4*i:]); v != want {
						t.Fatalf("thread %d = %d, want %d", i, v, want)
					}
				}
			})
		}
	}
}
