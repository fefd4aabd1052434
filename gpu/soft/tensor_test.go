package soft_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/device"
)

// tensor is a tensor of a test, and a box of it.
type tensor struct {
	typ     int32 // CUtensorMapDataType
	size    int   // bytes of an element
	dim     []int
	pitch   []int // bytes from line to line, plane to plane …
	box     []int
	step    []int
	swizzle int32
	nan     int32
}

func five[T, U ~int | ~int32 | ~uint32 | ~uint64](v []T) (out [5]U) {
	for i, x := range v {
		out[i] = U(x)
	}
	return out
}

// encode returns the map of the tensor.
func (x *tensor) encode(r *rig, address uint64) (abi.TensorMap, error) {
	return r.c.TensorMapEncodeTiled(x.typ, uint32(len(x.dim)), address, five[int, uint64](x.dim), five[int, uint64](x.pitch), five[int, uint32](x.box), five[int, uint32](x.step), 0, x.swizzle, 0, x.nan)
}

// each calls f for each element of the box at some coordinates, with its offset in the
// box, as in shared memory at a multiple of 1024, and its offset in the tensor, or -1.
func (x *tensor) each(at []int, f func(box, tensor int)) {
	count := make([]int, len(x.dim))
	total := 1
	for i := range count {
		count[i] = (x.box[i] + x.step[i] - 1) / x.step[i]
		if i == 0 {
			count[i] = x.box[i]
		}
		total *= count[i]
	}
	for n := range total {
		place, rest, inside := 0, n, true
		for i := range count {
			step := x.step[i]
			if i == 0 {
				step = 1
			}
			c := at[i] + rest%count[i]*step
			rest /= count[i]
			inside = inside && c >= 0 && c < x.dim[i]
			pitch := x.size
			if i > 0 {
				pitch = x.pitch[i-1]
			}
			place += c * pitch
		}
		if !inside {
			place = -1
		}
		b := n * x.size
		width := []int{0, 2, 4, 8}[x.swizzle]
		if width > 0 { // the unit of 16 bytes, by the line of 128 bytes that contains it
			unit := b / 16 % 8
			b = b/128*128 + (unit^b/128%width)*16 + b%16
		}
		f(b, place)
	}
}

func (x *tensor) bytes() int {
	last := len(x.dim) - 1
	if last == 0 {
		return x.dim[0] * x.size
	}
	return x.dim[last] * x.pitch[last-1]
}

var tensors = map[string]tensor{
	"1d":       {typ: 2, size: 4, dim: []int{1000}, box: []int{64}, step: []int{1}},
	"2d":       {typ: 6, size: 2, dim: []int{100, 37}, pitch: []int{208}, box: []int{64, 8}, step: []int{1, 1}, swizzle: 3},
	"2d 64":    {typ: 9, size: 2, dim: []int{100, 37}, pitch: []int{208}, box: []int{32, 16}, step: []int{1, 1}, swizzle: 2, nan: 1},
	"2d 32":    {typ: 0, size: 1, dim: []int{100, 37}, pitch: []int{112}, box: []int{32, 5}, step: []int{1, 1}, swizzle: 1},
	"3d steps": {typ: 7, size: 4, dim: []int{20, 9, 11}, pitch: []int{80, 800}, box: []int{8, 5, 4}, step: []int{1, 2, 3}},
	"5d":       {typ: 8, size: 8, dim: []int{6, 3, 4, 3, 2}, pitch: []int{48, 160, 640, 2560}, box: []int{4, 2, 3, 2, 2}, step: []int{1, 1, 1, 1, 1}},
}

// tensorKernel returns a kernel that loads a box and writes the content of shared
// memory, one that stores a box, and one that adds it.
func tensorKernel(dims int) string {
	var coords, regs []string
	for i := range dims {
		coords = append(coords, fmt.Sprintf("ld.param.u32 %%c%d, [at+%d];", i, 4*i))
		regs = append(regs, fmt.Sprintf("%%c%d", i))
	}
	at := fmt.Sprintf("[%%m, {%s}]", strings.Join(regs, ", "))
	var s strings.Builder
	s.WriteString(matrixHead)
	for name, body := range map[string]string{
		"load": fmt.Sprintf(`@%%p mbarrier.init.shared.b64 [%%b], 1; fence.proxy.async; bar.sync 0; @%%p mbarrier.arrive.expect_tx.shared.b64 _, [%%b], %%n;
@%%p cp.async.bulk.tensor.%dd.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%%s], %s, [%%b]; bar.sync 0;
W: mbarrier.try_wait.parity.shared.b64 %%q, [%%b], 0; @!%%q bra W;
L: ld.shared.b32 %%x, [%%sl]; st.global.b32 [%%o], %%x; add.u64 %%o, %%o, 128; add.u32 %%sl, %%sl, 128; add.u32 %%i, %%i, 128; setp.lt.u32 %%q, %%i, 8192; @%%q bra L;`, dims, at),
		"store": fmt.Sprintf(`L: ld.global.b32 %%x, [%%o]; st.shared.b32 [%%sl], %%x; add.u64 %%o, %%o, 128; add.u32 %%sl, %%sl, 128; add.u32 %%i, %%i, 128; setp.lt.u32 %%q, %%i, 8192; @%%q bra L; fence.proxy.async; bar.sync 0;
@%%p cp.async.bulk.tensor.%dd.global.shared::cta.tile.bulk_group %s, [%%s]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;`, dims, at),
		"add": fmt.Sprintf(`L: ld.global.b32 %%x, [%%o]; st.shared.b32 [%%sl], %%x; add.u64 %%o, %%o, 128; add.u32 %%sl, %%sl, 128; add.u32 %%i, %%i, 128; setp.lt.u32 %%q, %%i, 8192; @%%q bra L; fence.proxy.async; bar.sync 0;
@%%p cp.reduce.async.bulk.tensor.%dd.global.shared::cta.add.bulk_group %s, [%%s]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;`, dims, at),
	} {
		fmt.Fprintf(&s, `.entry %s(.param .align 64 .b8 map[128], .param .u64 buf, .param .u32 bytes, .param .align 8 .b8 at[24]) {
.reg .b64 %%m, %%o; .reg .b32 %%c<5>, %%s, %%sl, %%b, %%n, %%x, %%i, %%t; .reg .pred %%p, %%q; .shared .align 1024 .b8 sh[8192]; .shared .align 8 .b64 mb;
mov.b64 %%m, map; cvta.param.u64 %%m, %%m; ld.param.u64 %%o, [buf]; ld.param.u32 %%n, [bytes]; %s mov.u32 %%s, sh; mov.u32 %%b, mb; mov.u32 %%i, 0;
mov.u32 %%t, %%tid.x; setp.eq.u32 %%p, %%t, 0; mad.lo.u32 %%sl, %%t, 4, %%s; mad.wide.u32 %%o, %%t, 4, %%o;
%s
ret;
}
`, name, strings.Join(coords, " "), body)
	}
	return s.String()
}

// TestTensorCopies checks that bulk tensor copies move boxes that are inside of the
// tensor, partly outside, and completely outside.
func TestTensorCopies(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		x := tensors[name]
		t.Run(name, func(t *testing.T) {
			r := newRigOf(t, device.Options{VRAM: 64 << 20, SMs: 1, Capability: 90}, tensorKernel(len(x.dim)))
			rnd := rand.New(rand.NewSource(5))
			for round := range 12 {
				data, boxes := make([]byte, x.bytes()), make([]byte, 8192)
				rnd.Read(data)
				rnd.Read(boxes)
				at := make([]int, len(x.dim))
				for i := range at {
					at[i] = rnd.Intn(x.dim[i]+2*x.box[i]) - 3*x.box[i]/2
					if round == 0 {
						at[i] = 0
					}
				}
				if card(t) != nil { // where lines must begin at multiples of 16 bytes
					at[0] -= at[0] % (16 / x.size)
				}
				x.check(t, r, at, data, boxes, func(m []byte) any { return m })
			}
		})
	}
}

// TestTensorMapInMemory checks that a tensor map may also be in global memory, where a
// fence makes it visible to copies.
func TestTensorMapInMemory(t *testing.T) {
	x := tensors["2d"]
	r := newRigOf(t, device.Options{VRAM: 64 << 20, SMs: 1, Capability: 90}, strings.NewReplacer(
		".param .align 64 .b8 map[128]", ".param .u64 map",
		"mov.b64 %m, map; cvta.param.u64 %m, %m;", "ld.param.u64 %m, [map]; fence.proxy.tensormap::generic.acquire.gpu [%m], 128;",
	).Replace(tensorKernel(2)))
	data, boxes := make([]byte, x.bytes()), make([]byte, 8192)
	rnd := rand.New(rand.NewSource(6))
	rnd.Read(data)
	rnd.Read(boxes)
	x.check(t, r, []int{8, 3}, data, boxes, func(m []byte) any { return r.buffer(m) })
}

// check loads and stores a box. argument converts the tensor's map to a kernel's
// argument.
func (x *tensor) check(t *testing.T, r *rig, at []int, data, boxes []byte, argument func([]byte) any) {
	t.Helper()
	da, db := r.buffer(data), r.buffer(make([]byte, 8192))
	m, err := x.encode(r, da)
	if err != nil {
		t.Fatal(err)
	}
	opaque := m.Bytes()
	from, total := argument(opaque[:]), 0
	loaded, stored := make([]byte, 8192), bytes.Clone(data)
	x.each(at, func(box, tensor int) {
		total += x.size
		switch {
		case tensor >= 0:
			copy(loaded[box:], data[tensor:][:x.size])
			copy(stored[tensor:][:x.size], boxes[box:])
		case x.nan == 1:
			copy(loaded[box:], []byte{0xff, 0x7f})
		}
	})
	coords := append(raw(five[int, int32](at)), 0, 0, 0, 0)
	r.launch("load", [3]uint32{1, 1, 1}, [3]uint32{32, 1, 1}, 0, from, db, total, coords)
	got, err := r.read(db, 8192)
	if err != nil || !bytes.Equal(got[:total], loaded[:total]) {
		t.Fatalf("load of the box at %v: error %v, shared memory\n%x, want\n%x", at, err, got[:total], loaded[:total])
	}
	r.launch("store", [3]uint32{1, 1, 1}, [3]uint32{32, 1, 1}, 0, from, r.buffer(boxes), total, coords)
	if got, err = r.read(da, len(data)); err != nil || !bytes.Equal(got, stored) {
		t.Fatalf("store of the box at %v: error %v, tensor\n%x, want\n%x", at, err, got, stored)
	}
}

// TestTensorReduction checks that a reduction adds a box to a tensor, also of halves.
func TestTensorReduction(t *testing.T) {
	for name, x := range map[string]tensor{
		"u32": {typ: 2, size: 4, dim: []int{30, 9}, pitch: []int{128}, box: []int{8, 4}, step: []int{1, 1}},
		"f16": {typ: 6, size: 2, dim: []int{30, 9}, pitch: []int{64}, box: []int{8, 4}, step: []int{1, 1}},
	} {
		r := newRigOf(t, device.Options{VRAM: 64 << 20, SMs: 1, Capability: 90}, tensorKernel(2))
		one := raw(uint32(1))
		two := raw(uint32(2))
		if name == "f16" {
			one, two = []byte{0, 0x3c}, []byte{0, 0x40}
		}
		data, boxes := bytes.Repeat(one, x.bytes()/x.size), bytes.Repeat(one, 8192/x.size)
		want := bytes.Clone(data)
		at := []int{24, -2}
		x.each(at, func(_, tensor int) {
			if tensor >= 0 {
				copy(want[tensor:], two)
			}
		})
		da := r.buffer(data)
		m, err := x.encode(r, da)
		if err != nil {
			t.Fatal(err)
		}
		opaque := m.Bytes()
		r.launch("add", [3]uint32{1, 1, 1}, [3]uint32{32, 1, 1}, 0, opaque[:], r.buffer(boxes), 0, append(raw(five[int, int32](at)), 0, 0, 0, 0))
		if got, err := r.read(da, len(data)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("reduction of %s: error %v, tensor\n%x, want\n%x", name, err, got, want)
		}
	}
}

// TestTensorMapLimits checks that invalid maps are refused, by the API and, as programs
// can write to them, when they are used.
func TestTensorMapLimits(t *testing.T) {
	good := tensors["2d"]
	r := newRigOf(t, device.Options{VRAM: 64 << 20, SMs: 1, Capability: 90}, tensorKernel(2))
	address := r.buffer(make([]byte, good.bytes()))
	for name, change := range map[string]func(x *tensor){
		"a type": func(x *tensor) { x.typ = 13 }, "a rank": func(x *tensor) { x.dim = nil }, "a dimension": func(x *tensor) { x.dim = []int{0, 1} },
		"a pitch": func(x *tensor) { x.pitch = []int{201} }, "a box": func(x *tensor) { x.box = []int{257, 1} }, "rows": func(x *tensor) { x.box = []int{65, 8} },
		"wide rows": func(x *tensor) { x.box = []int{128, 8} }, "a step": func(x *tensor) { x.step = []int{1, 9} }, "a swizzle": func(x *tensor) { x.swizzle = 4 },
		"NaN of integers": func(x *tensor) { x.typ, x.nan = 1, 1 },
	} {
		x := good
		change(&x)
		if _, err := x.encode(r, address); !errors.Is(err, abi.ErrInvalidValue) {
			t.Errorf("encode with %s: error %v, want %v", name, err, abi.ErrInvalidValue)
		}
	}
	m, err := good.encode(r, address)
	if err != nil {
		t.Fatal(err)
	}
	if m, err = r.c.TensorMapReplaceAddress(m, address+8); !errors.Is(err, abi.ErrInvalidValue) {
		t.Errorf("TensorMapReplaceAddress with a misaligned address: error %v, want %v", err, abi.ErrInvalidValue)
	}
	if m, err = r.c.TensorMapReplaceAddress(m, address+1<<20); err != nil {
		t.Fatal(err)
	}
	outside := m.Bytes()
	r.launch("load", [3]uint32{1, 1, 1}, [3]uint32{32, 1, 1}, 0, outside[:], address, 1024, make([]byte, 24))
	if _, err := r.read(address, 4); !errors.Is(err, abi.ErrIllegalAddress) {
		t.Errorf("load from a tensor outside of memory: error %v, want %v", err, abi.ErrIllegalAddress)
	}
	rnd := rand.New(rand.NewSource(9))
	for range 30 {
		r := newRigOf(t, device.Options{VRAM: 64 << 20, SMs: 1, Capability: 90}, tensorKernel(2))
		m, err := good.encode(r, r.buffer(make([]byte, good.bytes())))
		if err != nil {
			t.Fatal(err)
		}
		wild := m.Bytes()
		for range 3 {
			wild[4+rnd.Intn(90)] = byte(rnd.Int())
		}
		out := r.buffer(make([]byte, 8192))
		r.launch("store", [3]uint32{1, 1, 1}, [3]uint32{32, 1, 1}, 0, wild[:], out, 1024, make([]byte, 24))
		_, _ = r.read(out, 4) // with or without an error, it must end
	}
	old := newRigOf(t, device.Options{VRAM: 64 << 20, SMs: 1, Capability: 61}, tensorKernel(2))
	if _, err := good.encode(old, address); !errors.Is(err, abi.ErrNotSupported) {
		t.Errorf("encode on a device of compute capability 6.1: error %v, want %v", err, abi.ErrNotSupported)
	}
}
