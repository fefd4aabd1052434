package soft_test

import (
	"bytes"
	"fmt"
	"math/rand"
	"slices"
	"testing"
)

// TestStoresToOneAddress checks that stores of a warp whose lanes share addresses store
// the value of the last lane, or on a GPU, as PTX does not define it, that of any of
// them.
func TestStoresToOneAddress(t *testing.T) {
	for _, typ := range []string{"u8", "u16", "u32", "u64", "v2.u32", "v4.u32"} {
		for _, space := range []string{".global", "", ".shared"} {
			value, size := "%r3", map[string]int{"u8": 1, "u16": 2, "u32": 4, "u64": 8, "v2.u32": 8, "v4.u32": 16}[typ]
			switch typ {
			case "u64":
				value = "%rd4"
			case "v2.u32":
				value = "{%r3, %r3}"
			case "v4.u32":
				value = "{%r3, %r3, %r3, %r3}"
			}
			r := newRig(t, ptxHead+fmt.Sprintf(`.entry k(.param .u64 out, .param .u64 index) { .reg .b64 %%rd<6>; .reg .b32 %%r<5>; .reg .pred %%p; .shared .align 16 .b8 t[512];
ld.param.u64 %%rd1, [out]; ld.param.u64 %%rd2, [index]; mov.u32 %%r1, %%tid.x; mul.wide.u32 %%rd3, %%r1, 4; add.u64 %%rd2, %%rd2, %%rd3; ld.global.u32 %%r2, [%%rd2];
mul.wide.u32 %%rd3, %%r2, %d; add.u64 %%rd1, %%rd1, %%rd3; add.u32 %%r3, %%r1, 1; cvt.u64.u32 %%rd4, %%r3; setp.ne.u32 %%p, %%r1, 17;
mov.u64 %%rd5, t; add.u64 %%rd5, %%rd5, %%rd3;
@%%p st%s.%s [%s], %s; bar.sync 0;
@%%p ld%s.%s %s, [%s]; @%%p st.global.%s [%%rd1], %s; ret; }`, size, space, typ, where(space), value, space, typ, value, where(space), typ, value))
			rnd := rand.New(rand.NewSource(int64(size)))
			index, stored := make([]uint32, 32), make([][][]byte, 32)
			for l := range index {
				index[l] = uint32(rnd.Intn(12))
				if l == 17 {
					continue
				}
				cell, step := make([]byte, size), min(size, 4)
				if typ == "u64" {
					step = 8
				}
				for at := 0; at < size; at += step {
					cell[at] = byte(l + 1)
				}
				stored[index[l]] = append(stored[index[l]], cell)
			}
			out := r.buffer(make([]byte, 32*size))
			r.launch("k", [3]uint32{1, 1, 1}, [3]uint32{32, 1, 1}, 0, out, r.buffer(raw(index)))
			got, err := r.read(out, 32*size)
			if err != nil {
				t.Fatal(err)
			}
			for i, values := range stored {
				switch {
				case values == nil:
					values = [][]byte{make([]byte, size)}
				case card(t) == nil:
					values = values[len(values)-1:]
				}
				if cell := got[i*size:][:size]; !slices.ContainsFunc(values, func(v []byte) bool { return bytes.Equal(v, cell) }) {
					t.Errorf("st%s.%s: cell %d = %x, want one of %x", space, typ, i, cell, values)
				}
			}
		}
	}
}

// where returns the register with the address of a lane's cell.
func where(space string) string {
	if space == ".shared" {
		return "%rd5"
	}
	return "%rd1"
}

// TestWarpLoadsOneAddressOnce checks that a warp's load of one address is one load,
// whatever other blocks store there: libgomp keeps the lanes of a warp in lockstep by
// the values that they read.
func TestWarpLoadsOneAddressOnce(t *testing.T) {
	r := newRig(t, ptxHead+`.visible .entry k(.param .u64 word, .param .u64 bad) {
	.reg .u64 %w, %b, %c, %d; .reg .u32 %i, %v, %x; .reg .u64 %s; .reg .pred %p, %q, %first;
	ld.param.u64 %w, [word]; ld.param.u64 %b, [bad]; mov.u32 %i, 0; mov.u32 %x, %laneid; setp.eq.u32 %first, %x, 0;
	AGAIN:
	ld.u32 %v, [%w]; ld.global.u64 %d, [%w+8];
	shfl.sync.idx.b32 %x, %v, 0, 31, -1; setp.ne.u32 %p, %v, %x; @%p red.global.add.u32 [%b], 1;
	cvt.u32.u64 %v, %d; shfl.sync.idx.b32 %x, %v, 0, 31, -1; setp.ne.u32 %p, %v, %x; @%p red.global.add.u32 [%b], 1;
	@%first red.global.add.u32 [%w], 1; @%first red.global.add.u64 [%w+8], 1;
	add.u32 %i, %i, 1; setp.lt.u32 %q, %i, 20000; @%q bra AGAIN;
	ret;
}`)
	word, bad := r.buffer(make([]byte, 16)), r.buffer(make([]byte, 4))
	r.launch("k", [3]uint32{4, 1, 1}, [3]uint32{32, 1, 1}, 0, word, bad)
	r.expect(bad, 1, func(int) uint32 { return 0 })
}
