package cuda

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// When libcuda is passed a launch, its references are bound to what they were bound to
// when the launch was made, and nothing is bound twice.
func TestReferences(t *testing.T) {
	d := newDouble(t)
	c := open(t, d, &gate{})
	x := c.(worker.References)
	mod, functions, _, err := c.ModuleLoad([]byte(source), worker.ModuleOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mem := must[uint64](t)(c.MemAlloc(4096))
	levels := must[worker.Array](t)(x.ArrayCreate(abi.ArrayCreate{Width: 8, Height: 4, Format: 1, Channels: 4, Levels: 2, Flags: abi.ArraySurface}))
	picture := must[worker.Reference](t)(x.ReferenceFind(mod, "picture", false))
	face := must[worker.Reference](t)(x.ReferenceFind(mod, "face", true))
	if _, err := x.ReferenceFind(mod, "face", false); !errors.Is(err, abi.ErrNotFound) {
		t.Errorf("ReferenceFind of an unknown name = %v, want %v", err, abi.ErrNotFound)
	}
	launched := func(binds map[worker.Reference]abi.TextureCreate, of worker.Array) []string {
		t.Helper()
		d.take(t)
		for r, a := range binds {
			if err := x.ReferenceBind(r, a, of); err != nil {
				t.Fatal(err)
			}
		}
		l := worker.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Params: make([]byte, 12)}
		if err := wait(t, func(done func(error)) error { return c.Launch(nil, functions[0], l, done) }); err != nil {
			t.Fatal(err)
		}
		got := d.take(t)
		return slices.DeleteFunc(got, func(line string) bool { return !strings.Contains(line, "Ref") })
	}
	same := func(got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("libcuda received %q, want %q", got, want)
		}
	}
	same(launched(nil, nil))
	linear := abi.TextureCreate{Resource: abi.ResourceLinear, Base: mem, Width: 4, Format: 0x20, Channels: 2, Flags: 1}
	plain := []string{
		"cuTexRefSetFlags 7ef 1", "cuTexRefSetFilterMode 7ef 0", "cuTexRefSetMipmapFilterMode 7ef 0", "cuTexRefSetMaxAnisotropy 7ef 0",
		"cuTexRefSetBorderColor 7ef 0,0,0,0", "cuTexRefSetMipmapLevelBias 7ef 0", "cuTexRefSetMipmapLevelClamp 7ef 0 0",
		"cuTexRefSetAddressMode 7ef 0 0", "cuTexRefSetAddressMode 7ef 1 0", "cuTexRefSetAddressMode 7ef 2 0",
	}
	same(launched(map[worker.Reference]abi.TextureCreate{picture: linear}, nil), append([]string{"cuTexRefSetFormat 7ef 32 2", "cuTexRefSetAddress 7ef 32 bytes"}, plain...)...)
	same(launched(map[worker.Reference]abi.TextureCreate{picture: linear}, nil))
	pitched := abi.TextureCreate{Resource: abi.ResourcePitch2D, Base: mem, Width: 4, Height: 2, Pitch: 64, Format: 2, Channels: 1, Flags: 1}
	same(launched(map[worker.Reference]abi.TextureCreate{picture: pitched}, nil), append([]string{"cuTexRefSetAddress2D 7ef 4x2 format=2 channels=1 pitch=64"}, plain...)...)
	same(launched(map[worker.Reference]abi.TextureCreate{picture: {
		Resource: abi.ResourceMipmapped, Address: [3]uint32{3, 1, 2}, Filter: 1, Flags: 2, Anisotropy: 4, MipFilter: 1, Bias: 0.5, MinLevel: 1, MaxLevel: 2, Border: [4]float32{3, 0, 0, 4},
	}}, levels), "cuTexRefSetMipmappedArray 7ef array=b0 flags=1", "cuTexRefSetFlags 7ef 2", "cuTexRefSetFilterMode 7ef 1", "cuTexRefSetMipmapFilterMode 7ef 1",
		"cuTexRefSetMaxAnisotropy 7ef 4", "cuTexRefSetBorderColor 7ef 3,0,0,4", "cuTexRefSetMipmapLevelBias 7ef 0.5", "cuTexRefSetMipmapLevelClamp 7ef 1 2",
		"cuTexRefSetAddressMode 7ef 0 3", "cuTexRefSetAddressMode 7ef 1 1", "cuTexRefSetAddressMode 7ef 2 2")
	same(launched(map[worker.Reference]abi.TextureCreate{face: {Surface: 1, Level: 1}}, levels), "cuSurfRefSetArray 5ef array=b2 flags=0")
	if err := x.ReferenceBind(picture, abi.TextureCreate{Resource: abi.ResourceLinear, Base: mem, Width: 1025, Format: 0x20, Channels: 1}, nil); !errors.Is(err, abi.ErrInvalidValue) {
		t.Errorf("ReferenceBind of a texture beyond the memory = %v, want %v", err, abi.ErrInvalidValue)
	}
}
