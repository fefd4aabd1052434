package cuda

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// The structs have the sizes of C on 64-bit Linux (CUDA driver API, "Data types
// used by CUDA driver").
func TestTextureStructs(t *testing.T) {
	for name, size := range map[string][2]uintptr{
		"CUDA_ARRAY3D_DESCRIPTOR": {unsafe.Sizeof(arrayDescriptor{}), 40},
		"CUDA_MEMCPY3D":           {unsafe.Sizeof(copyBox{}), 200},
		"CUDA_RESOURCE_DESC":      {unsafe.Sizeof(resource{}), 144},
		"CUDA_TEXTURE_DESC":       {unsafe.Sizeof(textureDescriptor{}), 104},
		"CUDA_RESOURCE_VIEW_DESC": {unsafe.Sizeof(viewDescriptor{}), 112},
	} {
		if size[0] != size[1] {
			t.Errorf("size of %s = %d, want %d as in C", name, size[0], size[1])
		}
	}
}

// Arrays are zeroed level by level, and copies and objects reach libcuda with their
// arguments in the right places.
func TestTextures(t *testing.T) {
	d := newDouble(t)
	c := open(t, d, &gate{})
	x := c.(worker.Textures)
	mem := must[uint64](t)(c.MemAlloc(4096))
	saw := func(want ...string) {
		t.Helper()
		got := d.take(t)
		for _, w := range want {
			if !slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, w) }) {
				t.Errorf("libcuda received %q, want %q", got, w)
			}
		}
	}
	plain := must[worker.Array](t)(x.ArrayCreate(abi.ArrayCreate{Width: 16, Height: 8, Depth: 2, Format: 0x20, Channels: 2, Levels: 1, Flags: abi.ArraySurface}))
	saw("cuArray3DCreate 16x8x2 format=32 channels=2 flags=2", "copy 128x8x2 from memory 80 at 0,0,0 to array a1 at 0,0,0")
	levels := must[worker.Array](t)(x.ArrayCreate(abi.ArrayCreate{Width: 8, Height: 4, Format: 1, Channels: 4, Levels: 2}))
	saw("cuMipmappedArrayCreate 8x4 levels=2", "copy 32x4x1 from memory 20 at 0,0,0 to array b1", "copy 16x2x1 from memory 10 at 0,0,0 to array b2")
	copied := func(a abi.ArrayCopy, dst, src worker.Array) {
		t.Helper()
		if err := wait(t, func(done func(error)) error { return x.ArrayCopy(nil, a, dst, src, done) }); err != nil {
			t.Error(err)
		}
	}
	copied(abi.ArrayCopy{Src: mem, DstAt: [3]uint64{8, 1, 0}, Size: [3]uint64{8, 2, 2}, Pitch: 32, Rows: 4, Arrays: abi.ArrayCopyDst}, plain, nil)
	saw("copy 8x2x2 from memory 20 at 0,0,0 to array a1 at 8,1,0")
	copied(abi.ArrayCopy{DstLevel: 1, SrcAt: [3]uint64{0, 3, 1}, Size: [3]uint64{8, 1, 1}, Arrays: 3}, levels, plain)
	saw("copy 8x1x1 from array a1 at 0,3,1 to array b2 at 0,0,0")
	if err := x.ArrayCopy(nil, abi.ArrayCopy{Dst: mem + 4096, Size: [3]uint64{8, 1, 1}, Arrays: abi.ArrayCopySrc}, nil, plain, nil); !errors.Is(err, abi.ErrInvalidValue) {
		t.Errorf("copy beyond the memory = %v, want %v", err, abi.ErrInvalidValue)
	}
	object := must[uint64](t)(x.TextureCreate(abi.TextureCreate{
		Resource: abi.ResourceMipmapped, Address: [3]uint32{0, 1, 2}, Filter: 1, Flags: 2, Anisotropy: 4, MipFilter: 1, Bias: 0.5, MinLevel: 1, MaxLevel: 2,
		Border: [4]float32{3, 0, 0, 4}, View: 3, ViewWidth: 8, ViewHeight: 4, LastLevel: 1,
	}, levels))
	saw("cuTexObjectCreate type=1 base=b0 format=0 channels=0 0 0 0 modes=0,1,2 filter=1 flags=2 aniso=4 mip=1 bias=0.5 levels=1-2 border=3,4", "view format=3 8x4x0 levels=0-1 layers=0-0")
	must[uint64](t)(x.TextureCreate(abi.TextureCreate{Resource: abi.ResourcePitch2D, Base: mem, Width: 4, Height: 2, Pitch: 64, Format: 2, Channels: 1}, nil))
	saw("cuTexObjectCreate type=3 base=0 format=2 channels=1 4 2 64 ")
	must[uint64](t)(x.TextureCreate(abi.TextureCreate{Resource: abi.ResourceLinear, Base: mem, Width: 4, Format: 3, Channels: 2}, nil))
	saw("cuTexObjectCreate type=2 base=0 format=3 channels=2 32 0 0 ")
	if _, err := x.TextureCreate(abi.TextureCreate{Resource: abi.ResourceLinear, Base: mem, Width: 513, Format: 3, Channels: 2}, nil); !errors.Is(err, abi.ErrInvalidValue) {
		t.Errorf("texture beyond the memory = %v, want %v", err, abi.ErrInvalidValue)
	}
	must[uint64](t)(x.TextureCreate(abi.TextureCreate{Surface: 1}, plain))
	saw("cuSurfObjectCreate type=0 base=a1")
	if err := errors.Join(x.TextureDestroy(object, false), x.TextureDestroy(object, true), x.ArrayDestroy(plain), x.ArrayDestroy(levels), wait(t, c.Notify)); err != nil {
		t.Error(err)
	}
	saw("cuTexObjectDestroy 7e0", "cuSurfObjectDestroy 7e0", "cuArrayDestroy a1", "cuMipmappedArrayDestroy b0")
}
