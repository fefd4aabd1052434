package soft_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/device"
)

// replaceKernel returns a kernel that copies a tensor map to shared memory, replaces
// fields of it there, copies it to global memory with a fence, and then loads a box with
// it, as a grouped product of matrices does for each group.
func replaceKernel(instructions string) string {
	s := tensorKernel(2)
	_, load, _ := strings.Cut(s, ".entry load(")
	load, _, _ = strings.Cut(load, "\n.entry")
	load = ".entry load(" + strings.Replace(load, ".param .u64 buf,", ".param .u64 to, .param .u64 base, .param .u64 buf,", 1)
	load = strings.Replace(load, "mov.b64 %m, map; cvta.param.u64 %m, %m;", `.shared .align 128 .b8 sm[128]; .reg .b64 %to, %base, %w; .reg .b32 %lane;
ld.param.u64 %to, [to]; ld.param.u64 %base, [base]; mov.u32 %lane, %tid.x; setp.eq.u32 %p, %lane, 0;
`+copyMap+"@%p bra R; bra.uni J;\nR: "+instructions+`
J: bar.warp.sync -1;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%to], [sm], 128;
fence.proxy.tensormap::generic.acquire.gpu [%to], 128; mov.b64 %m, %to;`, 1)
	return matrixHead + load
}

// copyMap copies the map of the kernel's parameter to shared memory.
var copyMap = func() string {
	var s strings.Builder
	for i := range 16 {
		fmt.Fprintf(&s, "ld.param.b64 %%w, [map+%d]; st.shared.b64 [sm+%d], %%w;\n", 8*i, 8*i)
	}
	return s.String()
}()

// TestTensorMapReplace checks that a map whose fields a kernel has replaced is that of
// another tensor, for each field.
func TestTensorMapReplace(t *testing.T) {
	from := tensors["2d"]
	for name, c := range map[string]struct {
		instructions string
		change       func(x *tensor)
	}{
		"address": {"tensormap.replace.tile.global_address.shared::cta.b1024.b64 [sm], %base;", func(*tensor) {}},
		"dimensions": {`tensormap.replace.tile.global_address.shared::cta.b1024.b64 [sm], %base;
tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [sm], 0, 64; tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [sm], 1, 5; tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [sm], 4, 1;
tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [sm], 0, 160; tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [sm], 3, 0;`,
			func(x *tensor) { x.dim, x.pitch = []int{64, 5}, []int{160} }},
		"box": {`{ .reg .b64 %g; cvta.shared.u64 %g, sm; tensormap.replace.tile.global_address.b1024.b64 [%g], %base;
tensormap.replace.tile.box_dim.b1024.b32 [%g], 0, 32; tensormap.replace.tile.box_dim.b1024.b32 [%g], 1, 9; tensormap.replace.tile.element_stride.b1024.b32 [%g], 1, 3;
tensormap.replace.tile.swizzle_mode.b1024.b32 [%g], 2; tensormap.replace.tile.fill_mode.b1024.b32 [%g], 1; tensormap.replace.tile.interleave_layout.b1024.b32 [%g], 0; }`,
			func(x *tensor) { x.box, x.step, x.swizzle, x.nan = []int{32, 9}, []int{1, 3}, 2, 1 }},
		"type": {`tensormap.replace.tile.global_address.shared::cta.b1024.b64 [sm], %base; tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [sm], 7; tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [sm], 0, 32;
tensormap.replace.tile.rank.shared::cta.b1024.b32 [sm], 1;`,
			func(x *tensor) { x.typ, x.size, x.box = 7, 4, []int{32, 8} }},
	} {
		t.Run(name, func(t *testing.T) {
			to := from
			c.change(&to)
			r := newRigOf(t, device.Options{VRAM: 64 << 20, SMs: 1, Capability: 90}, replaceKernel(c.instructions))
			data := make([]byte, 1<<16)
			rand.New(rand.NewSource(3)).Read(data)
			da, db := r.buffer(data), r.buffer(make([]byte, 8192))
			m, err := from.encode(r, r.buffer(make([]byte, from.bytes())))
			if err != nil {
				t.Fatal(err)
			}
			at, want, total := []int{8, 2}, make([]byte, 8192), 0
			to.each(at, func(box, tensor int) {
				total += to.size
				switch {
				case tensor >= 0:
					copy(want[box:], data[tensor:][:to.size])
				case to.nan == 1:
					copy(want[box:], []byte{0xff, 0x7f})
				}
			})
			opaque := m.Bytes()
			r.launch("load", [3]uint32{1, 1, 1}, [3]uint32{32, 1, 1}, 0, opaque[:], r.buffer(make([]byte, 128)), da, db, total, append(raw(five[int, int32](at)), 0, 0, 0, 0))
			got, err := r.read(db, 8192)
			if err != nil || !bytes.Equal(got[:total], want[:total]) {
				t.Fatalf("load with the replaced map: error %v, shared memory\n%x, want\n%x", err, got[:total], want[:total])
			}
		})
	}
}

// TestTensorMapReplaceLimits checks that a value that a map cannot have ends the kernel,
// as does memory that is no map, and that fields that do not fit each other end it where
// the map is used.
func TestTensorMapReplaceLimits(t *testing.T) {
	x := tensors["2d"]
	const parameter = "a parameter"
	for name, instructions := range map[string]string{
		parameter: "{ .reg .b64 %g; mov.b64 %g, map; cvta.param.u64 %g, %g; tensormap.replace.tile.rank.b1024.b32 [%g], 1; }",
		"a box":   "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [sm], 1, 257;", "no box": "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [sm], 1, 0;",
		"a rank": "tensormap.replace.tile.rank.shared::cta.b1024.b32 [sm], 5;", "a step": "tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [sm], 0, 9;",
		"a stride": "tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [sm], 0, 201;", "an address": "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [sm], 8;",
		"no map": "st.shared.b32 [sm], 0; tensormap.replace.tile.rank.shared::cta.b1024.b32 [sm], 1;",
	} {
		r := newRigOf(t, device.Options{VRAM: 64 << 20, SMs: 1, Capability: 90}, replaceKernel(instructions))
		da := r.buffer(make([]byte, x.bytes()))
		m, err := x.encode(r, da)
		if err != nil {
			t.Fatal(err)
		}
		opaque := m.Bytes()
		r.launch("load", [3]uint32{1, 1, 1}, [3]uint32{32, 1, 1}, 0, opaque[:], r.buffer(make([]byte, 128)), da, r.buffer(make([]byte, 8192)), 1024, make([]byte, 24))
		want := abi.ErrLaunchFailed
		if name == parameter {
			want = abi.ErrIllegalAddress
		}
		if _, err := r.read(da, 4); !errors.Is(err, want) {
			t.Errorf("replacing %s: error %v, want %v", name, err, want)
		}
	}
}
