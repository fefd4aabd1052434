package soft_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/device"
	"github.com/basalt-gpu/basalt/gpu/soft/exec"
)

// tilesKernel stores numbers to shared memory, at the thread's number with some bits
// inverted, and loads the sum of one of its row and one of its column: as a product of
// matrices does, in machine code for all tiles of a warp. The parameters change the
// addresses of some tiles after the machine code has been generated.
const tilesKernel = ptxHead + `.entry k(.param .u64 out, .param .u32 flip, .param .u32 down, .param .u32 apart, .param .u32 more, .param .u32 shift) {
.reg .b32 %r<17>; .reg .b64 %rd<8>; .reg .pred %p; .shared .align 16 .b8 t[1024];
ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [flip]; ld.param.u32 %r2, [down]; ld.param.u32 %r3, [apart]; ld.param.u32 %r4, [more]; ld.param.u32 %r16, [shift];
mov.u32 %r5, %tid.x; mov.u32 %r6, %tid.y; shl.b32 %r7, %r6, 4; add.u32 %r7, %r7, %r5; mul.wide.u32 %rd2, %r7, 4; add.u64 %rd1, %rd1, %rd2;
mov.u32 %r8, t; cvt.u64.u32 %rd3, %r8; mov.u32 %r9, 0;
L: xor.b32 %r10, %r7, %r1; add.u32 %r10, %r10, %r16; mul.wide.u32 %rd4, %r10, 4; add.u64 %rd4, %rd3, %rd4;
st.shared.u32 [%rd4], %r7; bar.sync 0;
mad.lo.u32 %r11, %r6, %r2, 0; shl.b32 %r11, %r11, 6; cvt.u64.u32 %rd5, %r11; add.u64 %rd5, %rd3, %rd5;
mul.lo.u32 %r12, %r6, %r3; add.u32 %r12, %r12, %r5; add.u32 %r12, %r12, %r4; mul.wide.u32 %rd6, %r12, 4; add.u64 %rd6, %rd3, %rd6;
bra M;
M: ld.shared.u32 %r13, [%rd5+4]; ld.shared.u32 %r14, [%rd6+64]; mad.lo.u32 %r13, %r13, 256, %r14;
bar.sync 0; add.u32 %r9, %r9, 1; setp.lt.u32 %p, %r9, 8; @%p bra L;
st.global.u32 [%rd1], %r13; ret; }`

// TestTilesOfWarp checks all tiles of warps in one body where addresses are others than
// those for which machine code has been generated.
func TestTilesOfWarp(t *testing.T) {
	const threads, words = 256, 256
	for _, c := range []struct{ flip, down, apart, more, shift int }{
		{0, 1, 0, 0, 0},                                                      // as before
		{8, 1, 0, 0, 0}, {16, 1, 0, 0, 0}, {24, 1, 0, 0, 0}, {1, 1, 0, 0, 0}, // stores of other lanes
		{0, 0, 0, 0, 0}, {0, 2, 0, 0, 0}, {4, 0, 3, 0, 0}, {0, 1, 1, 0, 0}, {0, 1, 12, 0, 0}, // rows and columns elsewhere
		{0, 1, 0, 224, 0}, {0, 1, 0, 225, 0}, {0, 1, 0, 232, 0}, {0, 1, 0, 240, 0}, // at the end of shared memory
		{0, 1, 0, 1 << 20, 0},
		{0, 1, 0, 0, 4}, {0, 1, 0, 0, 20}, // stores behind the end
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			outside := c.shift > 0
			for y := range 16 {
				outside = outside || y*c.down*16+1 >= words || y*c.apart+15+c.more+16 >= words
			}
			if outside && card(t) != nil {
				return // a GPU's shared memory may be larger than the kernel declares
			}
			r := newRigOf(t, device.Options{VRAM: 64 << 20, SMs: 1, Engine: exec.Compiled}, tilesKernel)
			out := r.buffer(make([]byte, 4*threads))
			for range 4 {
				r.launch("k", [3]uint32{4, 1, 1}, [3]uint32{16, 16, 1}, 0, out, 0, 1, 0, 0, 0)
				if _, err := r.read(out, 4); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				r.launch("k", [3]uint32{4, 1, 1}, [3]uint32{16, 16, 1}, 0, out, c.flip, c.down, c.apart, c.more, c.shift)
			}
			got, err := r.read(out, 4*threads)
			if outside {
				if !errors.Is(err, abi.ErrIllegalAddress) {
					t.Fatalf("kernel error = %v, want %v", err, abi.ErrIllegalAddress)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for i := range threads {
				x, y := i%16, i/16
				want := uint32((y*c.down*16+1)^c.flip)*256 + uint32((y*c.apart+x+c.more+16)^c.flip)
				if v := uint32(got[4*i]) | uint32(got[4*i+1])<<8 | uint32(got[4*i+2])<<16 | uint32(got[4*i+3])<<24; v != want {
					t.Fatalf("thread %d of row %d = %#x, want %#x", x, y, v, want)
				}
			}
		})
	}
}
