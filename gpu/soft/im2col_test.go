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

// images is a tensor of images of a test: channels, the dimensions of an image and the
// number of images, and the box in which the corner of a filter moves.
type images struct {
	size             int // bytes of an element
	typ              int32
	dim              []int
	lower, upper     []int // by dimension of an image
	step             []int // by dimension of the tensor
	channels, pixels int
	swizzle, nan     int32
}

func (x *images) spatial() int { return len(x.dim) - 2 }

// pitch returns the bytes from element to element of a dimension: the tensor has no
// gaps.
func (x *images) pitch(d int) int {
	n := x.size
	for _, v := range x.dim[:d] {
		n *= v
	}
	return n
}

func (x *images) encode(r *rig, address uint64) (abi.TensorMap, error) {
	var strides []int
	for d := 1; d < len(x.dim); d++ {
		strides = append(strides, x.pitch(d))
	}
	return r.c.TensorMapEncodeIm2col(x.typ, uint32(len(x.dim)), address, five[int, uint64](x.dim), five[int, uint64](strides), five[int, int32](x.lower), five[int, int32](x.upper),
		uint32(x.channels), uint32(x.pixels), five[int, uint32](x.step), 0, x.swizzle, 0, x.nan)
}

// corners returns all places of the filter's corner in all images, in the order in which
// a copy visits them: the first dimension of an image fastest.
func (x *images) corners() [][]int {
	list := [][]int{{}}
	for d := len(x.dim) - 1; d >= 1; d-- {
		from, to, step := 0, x.dim[d], 1
		if d <= x.spatial() {
			from, to, step = x.lower[d-1], x.dim[d]+x.upper[d-1], x.step[d]
		}
		var longer [][]int
		for _, rest := range list {
			for at := from; at < to; at += step {
				longer = append(longer, append([]int{at}, rest...))
			}
		}
		list = longer
	}
	return list
}

// each calls f for each element of the column that begins at place number first, with
// its offset in shared memory and its offset in the tensor, or -1.
func (x *images) each(first, channel int, offsets []int, f func(box, tensor int)) {
	corners := x.corners()
	for p := range x.pixels {
		for c := range x.channels {
			place := -1
			if first+p < len(corners) && channel+c >= 0 && channel+c < x.dim[0] {
				place = (channel + c) * x.size
				for d, at := range corners[first+p] {
					if d < x.spatial() {
						at += offsets[d]
					}
					if at < 0 || at >= x.dim[d+1] {
						place = -1
						break
					}
					place += at * x.pitch(d+1)
				}
			}
			b := (p*x.channels + c) * x.size
			if width := []int{1, 2, 4, 8}[x.swizzle]; width > 1 {
				b = b/128*128 + (b/16%8^b/128%width)*16 + b%16
			}
			f(b, place)
		}
	}
}

var imageTensors = map[string]images{
	"3d":         {typ: 7, size: 4, dim: []int{8, 11, 3}, lower: []int{-1}, upper: []int{-1}, step: []int{1, 1, 1}, channels: 4, pixels: 20},
	"4d":         {typ: 6, size: 2, dim: []int{16, 9, 7, 3}, lower: []int{-1, -1}, upper: []int{-1, -1}, step: []int{1, 1, 1, 1}, channels: 8, pixels: 40},
	"4d valid":   {typ: 6, size: 2, dim: []int{64, 9, 14, 2}, lower: []int{0, 0}, upper: []int{-2, -2}, step: []int{1, 1, 1, 1}, channels: 32, pixels: 64, swizzle: 2},
	"4d strided": {typ: 9, size: 2, dim: []int{64, 8, 14, 2}, lower: []int{-1, -1}, upper: []int{-1, -1}, step: []int{1, 2, 2, 1}, channels: 64, pixels: 32, swizzle: 3, nan: 1},
	"5d":         {typ: 2, size: 4, dim: []int{8, 5, 4, 6, 2}, lower: []int{-2, 0, -1}, upper: []int{1, -1, 0}, step: []int{1, 1, 3, 2, 1}, channels: 8, pixels: 100, swizzle: 1},
}

// im2colKernel returns a kernel that loads a column and writes the content of shared
// memory, and one that stores a column.
func im2colKernel(dims int) string {
	s := tensorKernel(dims)
	var loads, regs []string
	for i := range dims - 2 {
		loads = append(loads, fmt.Sprintf("ld.param.u16 %%h%d, [offs+%d];", i, 2*i))
		regs = append(regs, fmt.Sprintf("%%h%d", i))
	}
	s = strings.ReplaceAll(s, ".param .align 8 .b8 at[24])", ".param .align 8 .b8 at[24], .param .align 8 .b8 offs[8])")
	s = strings.ReplaceAll(s, ".reg .pred %p, %q;", ".reg .pred %p, %q; .reg .b16 %h<3>; "+strings.Join(loads, " "))
	s = strings.ReplaceAll(s, "global.tile.mbarrier", "global.im2col.mbarrier")
	s = strings.ReplaceAll(s, "}], [%b];", "}], [%b], {"+strings.Join(regs, ", ")+"};")
	return strings.ReplaceAll(s, "shared::cta.tile.bulk_group", "shared::cta.im2col_no_offs.bulk_group")
}

// TestIm2colCopies checks loads and stores of columns that begin at any place, in the
// middle of an image and near the end of the last one.
func TestIm2colCopies(t *testing.T) {
	for name, x := range imageTensors {
		t.Run(name, func(t *testing.T) {
			r := newRigOf(t, device.Options{VRAM: 64 << 20, SMs: 1, Capability: 90}, im2colKernel(len(x.dim)))
			rnd := rand.New(rand.NewSource(7))
			for round := range 10 {
				data, boxes := make([]byte, x.pitch(len(x.dim))), make([]byte, 8192)
				rnd.Read(data)
				rnd.Read(boxes)
				corners := x.corners()
				first, channel := rnd.Intn(len(corners)), 0
				offsets := make([]int, x.spatial())
				for d := range offsets {
					offsets[d] = rnd.Intn(4)
				}
				if round > 0 {
					channel = rnd.Intn(x.dim[0]/(16/x.size)) * (16 / x.size)
				}
				x.check(t, r, first, channel, offsets, data, boxes)
			}
		})
	}
}

func (x *images) check(t *testing.T, r *rig, first, channel int, offsets []int, data, boxes []byte) {
	t.Helper()
	da, db := r.buffer(data), r.buffer(make([]byte, 8192))
	m, err := x.encode(r, da)
	if err != nil {
		t.Fatal(err)
	}
	opaque := m.Bytes()
	at := append([]int{channel}, x.corners()[first]...)
	coords := append(raw(five[int, int32](at)), 0, 0, 0, 0)
	var offs []byte
	for d := range 4 {
		v := 0
		if d < len(offsets) {
			v = offsets[d]
		}
		offs = append(offs, byte(v), 0)
	}
	loaded, total := make([]byte, 8192), x.channels*x.size*x.pixels
	x.each(first, channel, offsets, func(box, tensor int) {
		switch {
		case tensor >= 0:
			copy(loaded[box:], data[tensor:][:x.size])
		case x.nan == 1:
			copy(loaded[box:], []byte{0xff, 0x7f})
		}
	})
	r.launch("load", [3]uint32{1, 1, 1}, [3]uint32{32, 1, 1}, 0, opaque[:], db, total, coords, offs)
	got, err := r.read(db, 8192)
	if err != nil || !bytes.Equal(got[:total], loaded[:total]) {
		t.Fatalf("load of the column at %v with offsets %v: error %v, shared memory\n%x, want\n%x", at, offsets, err, got[:total], loaded[:total])
	}
	stored := bytes.Clone(data)
	x.each(first, channel, make([]int, x.spatial()), func(box, tensor int) {
		if tensor >= 0 {
			copy(stored[tensor:][:x.size], boxes[box:])
		}
	})
	r.launch("store", [3]uint32{1, 1, 1}, [3]uint32{32, 1, 1}, 0, opaque[:], r.buffer(boxes), total, coords, offs)
	if got, err = r.read(da, len(data)); err != nil || !bytes.Equal(got, stored) {
		t.Fatalf("store of the column at %v: error %v, tensor\n%x, want\n%x", at, err, got, stored)
	}
}

// TestIm2colLimits checks that invalid maps are refused, and that a copy of boxes does
// not accept a map of im2col, nor the other way round.
func TestIm2colLimits(t *testing.T) {
	good := imageTensors["4d"]
	options := device.Options{VRAM: 64 << 20, SMs: 1, Capability: 90}
	r := newRigOf(t, options, tensorKernel(4))
	address := r.buffer(make([]byte, good.pitch(4)))
	for name, change := range map[string]func(x *images){
		"a rank": func(x *images) { x.dim = x.dim[:2] }, "a corner": func(x *images) { x.lower = []int{-129, 0} }, "an upper corner": func(x *images) { x.upper = []int{0, 128} },
		"pixels": func(x *images) { x.pixels = 1025 }, "no pixels": func(x *images) { x.pixels = 0 }, "channels": func(x *images) { x.channels = 257 }, "rows": func(x *images) { x.channels = 3 },
		"a step": func(x *images) { x.step = []int{1, 9, 1, 1} }, "wide rows": func(x *images) { x.channels, x.swizzle = 128, 3 },
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
	opaque := m.Bytes()
	r.launch("load", [3]uint32{1, 1, 1}, [3]uint32{32, 1, 1}, 0, opaque[:], address, 16, make([]byte, 24))
	if _, err := r.read(address, 4); !errors.Is(err, abi.ErrLaunchFailed) {
		t.Errorf("load of a box with a map of im2col: error %v, want %v", err, abi.ErrLaunchFailed)
	}
	r = newRigOf(t, options, im2colKernel(5))
	box := tensors["5d"]
	if m, err = box.encode(r, r.buffer(make([]byte, box.bytes()))); err != nil {
		t.Fatal(err)
	}
	opaque = m.Bytes()
	out := r.buffer(make([]byte, 8192))
	r.launch("load", [3]uint32{1, 1, 1}, [3]uint32{32, 1, 1}, 0, opaque[:], out, 16, make([]byte, 24), make([]byte, 8))
	if _, err := r.read(out, 4); !errors.Is(err, abi.ErrLaunchFailed) {
		t.Errorf("load of a column with a map of boxes: error %v, want %v", err, abi.ErrLaunchFailed)
	}
}
