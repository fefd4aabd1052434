package worker_test

import (
	"bytes"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker/fakedriver"
	"github.com/basalt-gpu/basalt/gpu/worker/guesttest"
)

// array creates an array and returns its handle.
func (r *rig) array(ctx uint64, a abi.ArrayCreate) uint64 {
	r.Helper()
	a.Ctx, a.Array = ctx, r.Handle()
	r.call(abi.OpArrayCreate, a)
	return a.Array
}

var plane = abi.ArrayCreate{Width: 8, Height: 4, Format: 0x20, Channels: 1, Levels: 3, Flags: abi.ArraySurface}

// TestArrays checks that arrays are counted, that copies reach the level and
// position that they specify, and that everything is freed.
func TestArrays(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx := r.context()
	free := func() uint64 { n, _ := r.call(abi.OpMemInfo, guesttest.None{}); return n }
	before := free()
	a, b := r.array(ctx, plane), r.array(ctx, plane)
	if got := before - free(); got != 2*64<<10 {
		t.Errorf("two small arrays count %d bytes, want 64 KiB each", got)
	}
	mem, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 64})
	data := []byte("0123456789abcdefghijklmnopqrstuv")
	if err := r.Send(abi.OpCopyHtoDInline, abi.CopyHtoDInline{Stream: ctx, Dst: mem}, data); err != nil {
		t.Fatal(err)
	}
	r.call(abi.OpArrayCopy, abi.ArrayCopy{Stream: ctx, Dst: a, Src: mem, DstLevel: 1, DstAt: [3]uint64{4, 1}, Size: [3]uint64{8, 1, 1}, Pitch: 8, Rows: 1, Arrays: abi.ArrayCopyDst})
	r.call(abi.OpArrayCopy, abi.ArrayCopy{Stream: ctx, Dst: b, Src: a, SrcLevel: 1, SrcAt: [3]uint64{4, 1}, Size: [3]uint64{8, 1, 1}, Arrays: 3})
	r.call(abi.OpArrayCopy, abi.ArrayCopy{Stream: ctx, Dst: mem + 32, Src: b, Size: [3]uint64{16, 1, 1}, Pitch: 16, Rows: 1, Arrays: abi.ArrayCopySrc})
	r.call(abi.OpCopyDtoH, abi.CopyDtoH{Stream: ctx, Src: mem + 32, DstOff: r.Arena, DstLen: 16})
	if got := r.Shm.Bytes(r.Arena, 16); !bytes.Equal(got, append([]byte("01234567"), make([]byte, 8)...)) {
		t.Errorf("bytes copied back = %q, want 01234567 and 8 zeros", got)
	}
	r.call(abi.OpArrayDestroy, abi.ArrayDestroy{Array: a})
	r.fails(abi.ErrInvalidHandle, abi.OpArrayDestroy, abi.ArrayDestroy{Array: a})
	r.call(abi.OpMemFree, abi.MemFree{Address: mem})
	if got := before - free(); got != 64<<10 {
		t.Errorf("%d bytes in use after one array was destroyed, want 64 KiB", got)
	}
	r.call(abi.OpCtxDestroy, abi.CtxDestroy{Ctx: ctx})
}

// TestBadArraysAndTextures checks that invalid arrays and objects of a hostile
// guest are errors of their command.
func TestBadArraysAndTextures(t *testing.T) {
	r := newRig(t, fakedriver.Options{}, 0)
	ctx, other := r.context(), r.context()
	a, foreign := r.array(ctx, plane), r.array(other, plane)
	mem, _ := r.call(abi.OpMemAlloc, abi.MemAlloc{Ctx: ctx, Size: 4096})
	for _, bad := range []func(*abi.ArrayCreate){
		func(a *abi.ArrayCreate) { a.Width = 0 }, func(a *abi.ArrayCreate) { a.Width = 1 << 63 }, func(a *abi.ArrayCreate) { a.Height = 1 << 40 },
		func(a *abi.ArrayCreate) { a.Depth = 1 << 15 }, func(a *abi.ArrayCreate) { a.Channels = 3 }, func(a *abi.ArrayCreate) { a.Format = 4 },
		func(a *abi.ArrayCreate) { a.Flags = 1 << 31 }, func(a *abi.ArrayCreate) { a.Levels = 0 }, func(a *abi.ArrayCreate) { a.Levels = 1 << 31 },
	} {
		c := plane
		c.Ctx, c.Array = ctx, r.Handle()
		bad(&c)
		r.fails(abi.ErrInvalidValue, abi.OpArrayCreate, c)
	}
	r.fails(abi.ErrInvalidHandle, abi.OpArrayCreate, abi.ArrayCreate{Ctx: ctx, Array: a, Width: 1, Format: 1, Channels: 1, Levels: 1})
	r.fails(abi.ErrOutOfMemory, abi.OpArrayCreate, abi.ArrayCreate{Ctx: ctx, Array: r.Handle(), Width: 1 << 17, Height: 1 << 17, Depth: 1 << 14, Format: 0x20, Channels: 4, Levels: 1})
	for want, copies := range map[abi.Result][]abi.ArrayCopy{
		abi.ErrInvalidValue: {
			{Dst: mem, Src: mem, Size: [3]uint64{4, 1, 1}},
			{Dst: a, Src: mem, Size: [3]uint64{33, 1, 1}, Pitch: 64, Rows: 1, Arrays: abi.ArrayCopyDst},
			{Dst: a, Src: mem, DstAt: [3]uint64{^uint64(0)}, Size: [3]uint64{4, 1, 1}, Pitch: 64, Rows: 1, Arrays: abi.ArrayCopyDst},
			{Dst: a, Src: mem, DstLevel: 3, Size: [3]uint64{4, 1, 1}, Pitch: 64, Rows: 1, Arrays: abi.ArrayCopyDst},
			{Dst: a, Src: mem, SrcAt: [3]uint64{1}, Size: [3]uint64{4, 1, 1}, Pitch: 64, Rows: 1, Arrays: abi.ArrayCopyDst},
			{Dst: a, Src: mem, Size: [3]uint64{8, 2, 1}, Pitch: 4, Rows: 2, Arrays: abi.ArrayCopyDst},
			{Dst: a, Src: mem + 4090, Size: [3]uint64{8, 1, 1}, Pitch: 8, Rows: 1, Arrays: abi.ArrayCopyDst},
			{Dst: a, Src: mem, Size: [3]uint64{8, 4, 1}, Pitch: 1 << 32, Rows: 1 << 17, Arrays: abi.ArrayCopyDst},
		},
		abi.ErrInvalidHandle: {
			{Dst: foreign, Src: mem, Size: [3]uint64{4, 1, 1}, Pitch: 64, Rows: 1, Arrays: abi.ArrayCopyDst},
			{Dst: a, Src: ctx, Size: [3]uint64{4, 1, 1}, Arrays: 3},
		},
	} {
		for _, c := range copies {
			c.Stream = ctx
			r.fails(want, abi.OpArrayCopy, c)
		}
	}
	for want, textures := range map[abi.Result][]abi.TextureCreate{
		abi.ErrInvalidValue: {
			{Base: a, Resource: 4}, {Base: a, Filter: 2}, {Base: a, Address: [3]uint32{0, 4}}, {Base: a, Flags: 1 << 30}, {Base: a, Anisotropy: 17},
			{Base: a, Level: 3}, {Base: a, Width: 1}, {Base: a, Surface: 2}, {Base: a, Surface: 1, Filter: 1}, {Base: a, View: 99}, {Base: a, FirstLevel: 1},
			{Base: mem, Resource: 2, Width: 4, Format: 9}, {Base: mem, Resource: 2, Width: 1025, Format: 0x20, Channels: 1},
			{Base: mem, Resource: 3, Width: 4, Height: 65, Pitch: 64, Format: 0x20, Channels: 1}, {Base: mem, Resource: 2, Width: 1 << 40, Format: 1, Channels: 1},
		},
		abi.ErrInvalidHandle: {{Base: foreign}, {Base: mem}, {Base: ctx}, {}},
	} {
		for _, c := range textures {
			c.Ctx, c.Texture = ctx, r.Handle()
			r.fails(want, abi.OpTextureCreate, c)
		}
	}
	plain := plane
	plain.Flags = 0
	r.fails(abi.ErrInvalidValue, abi.OpTextureCreate, abi.TextureCreate{Ctx: ctx, Texture: r.Handle(), Base: r.array(ctx, plain), Surface: 1})
	if n := r.driver.Textures(); n != 0 {
		t.Errorf("%d texture objects in the driver, want 0", n)
	}
	texture, surface := r.Handle(), r.Handle()
	r.call(abi.OpTextureCreate, abi.TextureCreate{Ctx: ctx, Texture: texture, Base: a})
	r.call(abi.OpTextureCreate, abi.TextureCreate{Ctx: ctx, Texture: surface, Base: a, Surface: 1})
	r.call(abi.OpTextureDestroy, abi.TextureDestroy{Texture: texture})
	r.call(abi.OpTextureDestroy, abi.TextureDestroy{Texture: surface})
	r.fails(abi.ErrInvalidHandle, abi.OpTextureDestroy, abi.TextureDestroy{Texture: texture})
	if n := r.driver.Textures(); n != 0 {
		t.Errorf("%d texture objects left in the driver, want 0", n)
	}
}
