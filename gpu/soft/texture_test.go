package soft_test

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// The values of CUarray_format.
const (
	formatU8    = 0x01
	formatU32   = 0x03
	formatFloat = 0x20
)

// textures returns the context as worker.Textures.
func (r *rig) textures() worker.Textures { return r.c.(worker.Textures) }

func (r *rig) array(a abi.ArrayCreate) worker.Array {
	r.Helper()
	o, err := r.textures().ArrayCreate(a)
	if err != nil {
		r.Fatal(err)
	}
	return o
}

// fill copies bytes, row after row, to a level of an array.
func (r *rig) fill(a worker.Array, desc *abi.ArrayCreate, level uint32, data []byte) {
	r.Helper()
	size := desc.Extent(level)
	src := r.buffer(data)
	if err := r.textures().ArrayCopy(nil, abi.ArrayCopy{Src: src, Size: size, Pitch: size[0], Rows: size[1], DstLevel: level, Arrays: abi.ArrayCopyDst}, a, nil, nil); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) object(a abi.TextureCreate, of worker.Array) uint64 {
	r.Helper()
	o, err := r.textures().TextureCreate(a, of)
	if err != nil {
		r.Fatal(err)
	}
	return o
}

func floatBytes(f ...float32) (b []byte) {
	for _, x := range f {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// textureKernel returns a kernel of one thread that stores %f0 to %f3 after a body, in
// which %t is the object.
func textureKernel(body string) string {
	return ptxHead + `.visible .entry k(.param .u64 out, .param .u64 object) {
.reg .b64 %o, %t; .reg .f32 %f<8>; .reg .b32 %r<8>; .reg .pred %p<4>; .reg .b64 %d<4>; .reg .b16 %h<4>;
ld.param.u64 %o, [out]; ld.param.u64 %t, [object]; cvta.to.global.u64 %o, %o;
` + body + `
st.global.f32 [%o], %f0; st.global.f32 [%o+4], %f1; st.global.f32 [%o+8], %f2; st.global.f32 [%o+12], %f3;
}`
}

// four executes the kernel and returns the four words, or its error.
func (r *rig) four(object uint64) ([]uint32, error) {
	r.Helper()
	out := r.buffer(make([]byte, 16))
	params := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, out), object)
	if err := r.c.Launch(nil, r.funcs["k"], worker.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Params: params}, nil); err != nil {
		return nil, err
	}
	got, done := make([]byte, 16), make(chan error, 1)
	if err := r.c.CopyDtoH(nil, got, out, func(err error) { done <- err }); err != nil {
		return nil, err
	}
	if err := patience.Receive(r.TB, time.Minute, "the kernel ends", done); err != nil {
		return nil, err
	}
	var words []uint32
	for _, v := range i32s(got) {
		words = append(words, uint32(v))
	}
	return words, nil
}

func bitsOf(f ...float32) (w []uint32) {
	for _, x := range f {
		w = append(w, math.Float32bits(x))
	}
	return w
}

func sameWords(a, b []uint32) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

// TestTextureInstructions checks what each form of tex reads from small images whose
// texels have distinct values.
func TestTextureInstructions(t *testing.T) {
	plane := abi.ArrayCreate{Width: 4, Height: 2, Format: formatFloat, Channels: 1, Levels: 1}
	layers := abi.ArrayCreate{Width: 4, Height: 2, Depth: 3, Format: formatFloat, Channels: 1, Levels: 1, Flags: abi.ArrayLayered}
	volume := abi.ArrayCreate{Width: 4, Height: 2, Depth: 3, Format: formatFloat, Channels: 1, Levels: 1}
	line := abi.ArrayCreate{Width: 8, Format: formatFloat, Channels: 1, Levels: 1}
	lines := abi.ArrayCreate{Width: 4, Depth: 2, Format: formatFloat, Channels: 1, Levels: 1, Flags: abi.ArrayLayered}
	cube := abi.ArrayCreate{Width: 2, Height: 2, Depth: 6, Format: formatFloat, Channels: 1, Levels: 1, Flags: abi.ArrayCubemap}
	cubes := abi.ArrayCreate{Width: 2, Height: 2, Depth: 12, Format: formatFloat, Channels: 1, Levels: 1, Flags: abi.ArrayCubemap | abi.ArrayLayered}
	linear := abi.TextureCreate{Filter: 1}
	normalized := abi.TextureCreate{Filter: 1, Flags: abi.TextureNormalized}
	for name, c := range map[string]struct {
		desc abi.ArrayCreate
		how  abi.TextureCreate
		body string
		want []uint32
	}{
		"1d":       {line, linear, "tex.1d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t, {0f40200000}];", bitsOf(2, 0, 0, 0)},
		"1d whole": {line, linear, "tex.1d.v4.f32.s32 {%f0,%f1,%f2,%f3}, [%t, {5}];", bitsOf(5, 0, 0, 0)},
		"2d":       {plane, linear, "tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t, {0f40000000, 0f3F800000}];", bitsOf(3.5, 0, 0, 0)},
		"2d wrap":  {plane, normalized, "tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t, {0f3F800000, 0f3E800000}];", bitsOf(1.5, 0, 0, 0)},
		"2d offset": {plane, linear, "tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t, {0f3F000000, 0f3F000000}], {2, 1};",
			bitsOf(6, 0, 0, 0)},
		"3d":  {volume, linear, "mov.f32 %f7, 0f3F000000; tex.3d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t, {%f7, %f7, 0f40000000, %f7}];", bitsOf(12, 0, 0, 0)},
		"a1d": {lines, linear, "mov.u32 %r0, 1; tex.a1d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t, {%r0, 0f3FC00000}];", bitsOf(5, 0, 0, 0)},
		"a2d": {layers, linear, "mov.u32 %r0, 9; mov.f32 %f7, 0f3F000000; tex.a2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t, {%r0, %f7, %f7, %f7}];", bitsOf(16, 0, 0, 0)},
		"cube": {cube, normalized, "mov.f32 %f7, 0fBF800000; mov.f32 %f6, 0f00000000; tex.cube.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t, {%f6, %f6, %f7, %f6}];",
			bitsOf(21.5, 0, 0, 0)},
		"acube": {cubes, normalized, "mov.u32 %r0, 1; mov.f32 %f7, 0f3F800000; mov.f32 %f6, 0f00000000; tex.acube.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t, {%r0, %f7, %f6, %f6}];",
			bitsOf(25.5, 0, 0, 0)},
		"level": {plane, linear, "tex.level.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t, {0f40000000, 0f3F800000}], 0f40400000;", bitsOf(3.5, 0, 0, 0)},
		"grad": {plane, linear, "mov.f32 %f7, 0f3F800000; tex.grad.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t, {0f40000000, 0f3F800000}], {%f7, %f7}, {%f7, %f7};",
			bitsOf(3.5, 0, 0, 0)},
		"f16": {plane, linear, "tex.2d.v4.f16.f32 {%h0,%h1,%h2,%h3}, [%t, {0f40000000, 0f3F800000}]; cvt.f32.f16 %f0, %h0; cvt.f32.f16 %f1, %h1; mov.f32 %f2, %f1; mov.f32 %f3, %f1;",
			bitsOf(3.5, 0, 0, 0)},
		"f16x2": {plane, linear, "tex.2d.v2.f16x2.f32 {%r0,%r1}, [%t, {0f40000000, 0f3F800000}]; mov.b32 %f0, %r0; mov.b32 %f1, %r1; mov.f32 %f2, %f1; mov.f32 %f3, %f1;",
			[]uint32{0x4300, 0, 0, 0}},
		"resident": {plane, linear, "tex.2d.v4.f32.f32 {%f0,_,_,_}|%p0, [%t, {0f40000000, 0f3F800000}]; selp.f32 %f1, 0f3F800000, 0f00000000, %p0; mov.f32 %f2, 0f00000000; mov.f32 %f3, %f2;",
			bitsOf(3.5, 1, 0, 0)},
		"sampler": {plane, linear, "tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t, %t, {0f40000000, 0f3F800000}];", bitsOf(3.5, 0, 0, 0)},
		"tld4":    {plane, linear, "tld4.r.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t, {0f40000000, 0f3F800000}];", bitsOf(5, 6, 2, 1)},
		"txq": {layers, linear, "txq.width.b32 %r0, [%t]; txq.height.b32 %r1, [%t]; txq.array_size.b32 %r2, [%t]; txq.level.width.b32 %r3, [%t], 0; " +
			"mov.b32 %f0, %r0; mov.b32 %f1, %r1; mov.b32 %f2, %r2; mov.b32 %f3, %r3;", []uint32{4, 2, 3, 4}},
		"istypep": {plane, linear, "istypep.texref %p0, %t; istypep.surfref %p1, %t; istypep.texref %p2, %o; selp.f32 %f0, 0f3F800000, 0f00000000, %p0; " +
			"selp.f32 %f1, 0f3F800000, 0f00000000, %p1; selp.f32 %f2, 0f3F800000, 0f00000000, %p2; mov.f32 %f3, %f2;", bitsOf(1, 0, 0, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, textureKernel(c.body))
			a := r.array(c.desc)
			var all []byte
			for i := range c.desc.Width * max(1, c.desc.Height) * max(1, c.desc.Depth) {
				all = append(all, floatBytes(float32(i))...)
			}
			r.fill(a, &c.desc, 0, all)
			got, err := r.four(r.object(c.how, a))
			if err != nil || !sameWords(got, c.want) {
				t.Errorf("fetched words = %x, error %v; want %x", got, err, c.want)
			}
		})
	}
}

func TestLinearAndPitchedTextures(t *testing.T) {
	r := newRig(t, textureKernel("tex.1d.v4.u32.s32 {%r0,%r1,%r2,%r3}, [%t, {2}]; tex.1d.v4.u32.s32 {%r4,%r5,%r6,%r7}, [%t, {-1}]; mov.b32 %f0, %r0; mov.b32 %f1, %r1; mov.b32 %f2, %r2; mov.b32 %f3, %r4;"))
	mem := r.buffer([]byte{1, 2, 3, 4, 5, 6, 7, 8})
	got, err := r.four(r.object(abi.TextureCreate{Base: mem, Resource: abi.ResourceLinear, Width: 4, Format: formatU8, Channels: 2, Flags: abi.TextureReadAsInteger}, nil))
	if err != nil || !sameWords(got, []uint32{5, 6, 0, 0}) {
		t.Errorf("texels of linear memory = %x, error %v; want %x", got, err, []uint32{5, 6, 0, 0})
	}
	r = newRig(t, textureKernel("tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t, {0f3FC00000, 0f3FC00000}];"))
	mem = r.buffer(append(make([]byte, 32), 1, 2, 51, 4))
	got, err = r.four(r.object(abi.TextureCreate{Base: mem, Resource: abi.ResourcePitch2D, Width: 2, Height: 2, Pitch: 32, Format: formatU8, Channels: 2}, nil))
	if err != nil || !sameWords(got, bitsOf(0.2, float32(4/255.), 0, 0)) {
		t.Errorf("texels of pitched memory = %x, error %v; want %x", got, err, bitsOf(0.2, float32(4/255.), 0, 0))
	}
}

// TestLinearTextureLargerThanItsMemory checks that such a texture can be created, that the
// texels in its memory can be read, and that a fetch of another fails unless it is outside of
// the texture, where it is 0.
func TestLinearTextureLargerThanItsMemory(t *testing.T) {
	const texels = 1024
	for at, want := range map[string][]uint32{"1023": bitsOf(7, 0, 0, 0), "1024": nil, "2048": bitsOf(0, 0, 0, 0), "-1": bitsOf(0, 0, 0, 0)} {
		r := newRig(t, textureKernel("tex.1d.v4.f32.s32 {%f0,%f1,%f2,%f3}, [%t, {"+at+"}];"))
		mem := r.buffer(append(make([]byte, 4*(texels-1)), floatBytes(7)...))
		got, err := r.four(r.object(abi.TextureCreate{Base: mem, Resource: abi.ResourceLinear, Width: 2 * texels, Format: formatFloat, Channels: 1}, nil))
		switch {
		case want == nil && card(t) != nil: // the memory behind an allocation may be mapped
		case want == nil && !errors.Is(err, abi.ErrIllegalAddress):
			t.Errorf("texel %s of %d in memory of %d = %x, error %v; want %v", at, 2*texels, texels, got, err, abi.ErrIllegalAddress)
		case want != nil && (err != nil || !sameWords(got, want)):
			t.Errorf("texel %s of %d in memory of %d = %x, error %v; want %x", at, 2*texels, texels, got, err, want)
		}
	}
}

func TestSurfaceInstructions(t *testing.T) {
	r := newRig(t, textureKernel(`
sust.b.2d.b32.trap [%t, {4, 1}], 77;
sust.p.2d.b32.trap [%t, {2, 1}], 5;
mov.u32 %r6, 30; sust.b.2d.v2.b16.zero [%t, {8, 7}], {%h0, %h0};
sured.b.add.2d.u32.trap [%t, {4, 1}], %r6;
sured.p.max.2d.b32.clamp [%t, {9, 9}], %r6;
suld.b.2d.v2.b32.trap {%r0, %r1}, [%t, {0, 1}];
suld.b.2d.b32.clamp %r2, [%t, {400, 1}];
suld.b.2d.b8.zero %r3, [%t, {-1, 0}];
suq.width.b32 %r4, [%t]; add.u32 %r3, %r3, %r4;
mov.b32 %f0, %r0; mov.b32 %f1, %r1; mov.b32 %f2, %r2; mov.b32 %f3, %r3;`))
	desc := abi.ArrayCreate{Width: 4, Height: 2, Format: formatU32, Channels: 1, Levels: 1, Flags: abi.ArraySurface}
	a := r.array(desc)
	got, err := r.four(r.object(abi.TextureCreate{Surface: 1}, a))
	if want := []uint32{0, 107, 30, 4}; err != nil || !sameWords(got, want) {
		t.Errorf("words = %d, error %v; want %d", got, err, want)
	}
}

// TestTexturesThatAreNone checks that a kernel that uses invalid object numbers fails
// its own context, and nothing else.
func TestTexturesThatAreNone(t *testing.T) {
	fetch := "tex.1d.v4.f32.s32 {%f0,%f1,%f2,%f3}, [%t, {0}];"
	surface := "suld.b.1d.b32.trap %r0, [%t, {-4}];"
	for name, c := range map[string]struct {
		body   string
		object func(r *rig) uint64
	}{
		"nothing": {fetch, func(*rig) uint64 { return 1 << 40 }},
		"destroyed": {fetch, func(r *rig) uint64 {
			o := r.object(abi.TextureCreate{Base: r.buffer(make([]byte, 64)), Resource: abi.ResourceLinear, Width: 4, Format: formatFloat, Channels: 1}, nil)
			if err := r.textures().TextureDestroy(o, false); err != nil {
				r.Fatal(err)
			}
			return o
		}},
		"freed": {fetch, func(r *rig) uint64 {
			a := r.array(abi.ArrayCreate{Width: 4096, Format: formatFloat, Channels: 1, Levels: 1}) // large, so that the kernel's output does not reuse its memory
			o := r.object(abi.TextureCreate{}, a)
			if err := r.textures().ArrayDestroy(a); err != nil {
				r.Fatal(err)
			}
			return o
		}},
		"a surface": {fetch, func(r *rig) uint64 {
			return r.object(abi.TextureCreate{Surface: 1}, r.array(abi.ArrayCreate{Width: 4, Format: formatFloat, Channels: 1, Levels: 1, Flags: abi.ArraySurface}))
		}},
		"outside": {surface, func(r *rig) uint64 {
			return r.object(abi.TextureCreate{Surface: 1}, r.array(abi.ArrayCreate{Width: 4, Format: formatFloat, Channels: 1, Levels: 1, Flags: abi.ArraySurface}))
		}},
		"another context's": {fetch, func(r *rig) uint64 {
			other, err := r.d.NewContext(0, nil, testWindow)
			if err != nil {
				r.Fatal(err)
			}
			mem, err := other.MemAlloc(64)
			if err != nil {
				r.Fatal(err)
			}
			o, err := other.(worker.Textures).TextureCreate(abi.TextureCreate{Base: mem, Resource: abi.ResourceLinear, Width: 4, Format: formatFloat, Channels: 1}, nil)
			if err != nil {
				r.Fatal(err)
			}
			return o
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, textureKernel(c.body))
			if got, err := r.four(c.object(r)); !errors.Is(err, abi.ErrIllegalAddress) {
				t.Errorf("fetched words = %x, error %v; want %v", got, err, abi.ErrIllegalAddress)
			}
		})
	}
}

// TestRefusedTextureInstructions checks that forms that are not supported refuse the
// kernel, with the reason.
func TestRefusedTextureInstructions(t *testing.T) {
	for body, why := range map[string]string{
		"tex.2dms.v4.f32.s32 {%f0,%f1,%f2,%f3}, [%t, {0, 0, 0, 0}];":  "not implemented: textures with several samples, .2dms",
		"tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t, {%f0, %f1}], %f2;": "not implemented: tex with a comparison with a depth",
		"tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t, {%f0}];":           "must have at least 2 more elements for its geometry, found 1",
		"tex.2d.v4.f32.f32 {%f0,%f1}, [%t, {%f0, %f1}];":              "must be a vector of 4 elements, found a vector of 2",
		"tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%r0, {%f0, %f1}];":     "%r0 must be a register of 64 bits, found .b32",
		"tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [s, {%f0, %f1}];":       "nothing can be bound",
		"mov.u64 %t, s;": "nothing can be bound",
		"tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t, s, {%f0, %f1}];": "nothing can be bound",
		"suld.p.2d.b32.trap %r0, [%t, {0, 0}];":                     "suld must have the qualifier .b, found",
		"sust.b.2d.v4.b64.trap [%t, {0, 0}], {%d0, %d1, %d2, %d3};": "the vector of sust must have at most 16 bytes, found 32",
		"sust.b.cube.b32.trap [%t, {0, 0, 0, 0}], %r0;":             "the geometry of sust must not be a cube",
		"sured.b.xor.2d.u32.trap [%t, {0, 0}], %r0;":                "not implemented: sured with qualifiers .b.xor",
		"txq.squad.b32 %r0, [%t];":                                  "not implemented: txq with property .squad",
		"istypep.samplerref %p0, %t;":                               "not implemented: istypep with qualifiers .samplerref",
	} {
		log, err := refusal(t, strings.Replace(textureKernel(body), ".visible", ".global .texref bound;\n.global .samplerref s = { addr_mode_0 = clamp_to_border, filter_mode = linear };\n.global .surfref u;\n.visible", 1))
		if !errors.Is(err, abi.ErrNoBinaryForGPU) || !strings.Contains(log, why) {
			t.Errorf("%s: launch error %v, log %q; want %v and a log with %q", body, err, log, abi.ErrNoBinaryForGPU, why)
		}
	}
}
